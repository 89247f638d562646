# SPDX-License-Identifier: MIT
# run: -n 3
# says: SP101 all 3 nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: Node 0 has a message from node 2 with tag 0, and waits for one of node 1.
"""Node 0 waits for node 1, but it is node 2 that sends."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    comm.recv(1)  # <- node 0: recv(source=1, tag=ANY)
if comm.rank == 2:
    comm.send("from two", 0)
comm.barrier()  # <- nodes 1-2: barrier()
