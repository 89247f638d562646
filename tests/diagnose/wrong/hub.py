# SPDX-License-Identifier: MIT
# run: -n 7
# says: SP101 all 7 nodes wait, and no message is on its way
# circle: 0 → 6 → 0
# hint: let one node send before it receives
"""Sources that follow no rule: only so much is said of them."""

import spcomm

SOURCES = [6, 3, 5, 1, 0, 4, 0]
comm = spcomm.startup()
comm.barrier()  # else two nodes that wait for each other can be found before the others come
comm.recv(SOURCES[comm.rank])  # <- nodes 0-6: recv(source=…, tag=ANY)
