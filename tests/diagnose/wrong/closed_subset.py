# SPDX-License-Identifier: MIT
# run: -n 3
# says: SP101 nodes 0-1 of 3 wait for each other only, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""Two wait for each other while the third has other things to do for a long time."""

import time

import spcomm

comm = spcomm.startup()
if comm.rank == 2:
    time.sleep(3600)
else:
    comm.recv(1 - comm.rank)  # <- node 0: recv(source=1, tag=ANY) | node 1: recv(source=0, tag=ANY)
