# SPDX-License-Identifier: MIT
# run: -n 4
# says: SP101 all 4 nodes wait, and no message is on its way
# circle: 0 → 3 → 0
# hint: Nodes 0-2 wait in barrier() for node 3, which must call it, too
"""Node 3 receives what is sent after the barrier only."""

import spcomm

comm = spcomm.startup()
if comm.rank == 3:
    comm.recv(0)  # <- node 3: recv(source=0, tag=ANY)
comm.barrier()  # <- nodes 0-2: barrier()
if comm.rank == 0:
    comm.send("late", 3)
