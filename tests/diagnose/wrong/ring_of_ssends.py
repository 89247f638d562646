# SPDX-License-Identifier: MIT
# run: -n 3
# says: SP101 all 3 nodes wait, and no message is on its way
# circle: 0 → 1 → 2 → 0
# hint: every node sends first
"""Synchronous sends around a ring."""

import spcomm

comm = spcomm.startup()
comm.ssend(comm.rank, (comm.rank + 1) % comm.size, tag=4)  # <- nodes 0-2: ssend(dest=rank+1, tag=4)
comm.recv((comm.rank - 1) % comm.size, tag=4)
