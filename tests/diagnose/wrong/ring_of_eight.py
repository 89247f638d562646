# SPDX-License-Identifier: MIT
# run: -n 8
# says: SP101 all 8 nodes wait, and no message is on its way
# circle: 0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 0
# hint: let one node send before it receives
"""A ring of eight, which turns ten times before everybody forgets to send first."""

import spcomm

comm = spcomm.startup()
left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
for turn in range(10):
    comm.send(turn, left)
    assert comm.recv(right) == turn
comm.recv(right)  # <- nodes 0-7: recv(source=rank+1, tag=ANY)
comm.send(comm.rank, left)
