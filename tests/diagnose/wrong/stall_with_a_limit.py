# SPDX-License-Identifier: MIT
# run: -n 2 --stall 0.3
# says: SP102 nodes 0-1 have been waiting for … s
# hint: It may be a deadlock; it is not proven, because one of them has a time limit.
"""One of two waits has a time limit: it will end."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    comm.recv(1, timeout=3600)  # <- node 0: recv(source=1, tag=ANY)
else:
    comm.recv(0)  # <- node 1: recv(source=0, tag=ANY)
