# SPDX-License-Identifier: MIT
# run: -n 3
# says: SP101 all 3 nodes wait, and no message is on its way
# circle: 0 → 2 → 1 → 0
# hint: let one node send before it receives
"""A ring in which every node waits for its left neighbour first."""

import spcomm

comm = spcomm.startup()


def step(value):
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    received = comm.recv(left, tag=7)  # <- nodes 0-2: recv(source=rank-1, tag=7) in step
    comm.send(value, right, tag=7)
    return received


step(comm.rank)
