# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: Node 1 waits in barrier() for node 0, which must call it, too.
"""A synchronous send before a barrier, its receive after it."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    comm.ssend("hello", 1)  # <- node 0: ssend(dest=1, tag=0)
comm.barrier()  # <- node 1: barrier()
if comm.rank == 1:
    comm.recv(0)
