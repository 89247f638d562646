# SPDX-License-Identifier: MIT
# run: -n 4
# says: SP101 all 4 nodes wait, and no message is on its way
# circle: 0 → 2 → 0
# hint: Node 0 waits in barrier() of a part for node 2; nodes 1-3 wait in barrier() for node 0.
"""One node calls the barrier of its part, all others that of the run."""

import spcomm

comm = spcomm.startup()
part = comm.split(comm.rank % 2)
if comm.rank == 0:
    part.barrier()  # <- node 0: barrier(), as node 0 of a part of 2
else:
    comm.barrier()  # <- nodes 1-3: barrier()
