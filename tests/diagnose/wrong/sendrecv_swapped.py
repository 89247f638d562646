# SPDX-License-Identifier: MIT
# run: -n 4
# says: SP101 all 4 nodes wait, and no message is on its way
# circle: 0 → 1 → 2 → 3 → 0
# hint: Node 0 has a message from node 3 with tag 0, and waits for one of node 1.
"""An exchange with the neighbours, with source and destination the same one."""

import spcomm

comm = spcomm.startup()
right = (comm.rank + 1) % comm.size
comm.sendrecv(comm.rank, right, right)  # <- nodes 0-3: recv(source=rank+1, tag=0)
