# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 node 0 of 2 waits for what can never come
# circle: 0 → 0
# hint: Node 0 receives from itself, and nobody else can
"""The rank of the neighbour is computed wrong: it is the node itself."""

import time

import spcomm

comm = spcomm.startup()
if comm.rank == 1:
    time.sleep(3600)
comm.recv(source=(comm.rank + 2) % comm.size)  # <- node 0: recv(source=0, tag=ANY)
