# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: Node 0 waits in fuzzy_barrier() for node 1, which must call it, too
"""Node 0 waits for the end of a fuzzy barrier that node 1 will enter later."""

import spcomm

comm = spcomm.startup()
if comm.rank == 1:
    comm.recv(0)  # <- node 1: recv(source=0, tag=ANY)
with comm.fuzzy_barrier():  # <- node 0: fuzzy_barrier()
    work = sum(range(1000))
comm.send("done", 1)
