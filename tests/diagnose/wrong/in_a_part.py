# SPDX-License-Identifier: MIT
# run: -n 4
# says: SP101 nodes 1, 3 of 4 wait for each other only, and no message is on its way
# circle: 1 → 3 → 1
# hint: let one node send before it receives
"""The odd nodes form a part, and wait for each other in it; ranks are those of the part."""

import time

import spcomm

comm = spcomm.startup()
part = comm.split(comm.rank % 2)
if comm.rank % 2 == 0:
    time.sleep(3600)
if part.rank == 0:
    part.recv(1)  # <- node 1: recv(source=1, tag=ANY), as node 0 of a part of 2
else:
    part.recv(0)  # <- node 3: recv(source=0, tag=ANY), as node 1 of a part of 2
