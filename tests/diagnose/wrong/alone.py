# SPDX-License-Identifier: MIT
# run: -n 1
# says: SP101 the node waits, and no message is on its way
# hint: No matching message has been sent
"""A program for two nodes, run with one."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    print(comm.recv())  # <- node 0: recv(source=ANY, tag=ANY)
else:
    comm.send("hello", 0)
