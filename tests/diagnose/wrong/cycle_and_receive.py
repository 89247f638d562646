# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: Node 0 waits in coordinated_recv() for node 1, which must call it, too
"""A cycle of coordinated messages that node 1 comes to later."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    comm.coordinated_send("for you", 1)
    while comm.coordinated_recv() is not None:  # <- node 0: coordinated_recv()
        pass
    comm.send("next", 1)
else:
    comm.recv(0)  # <- node 1: recv(source=0, tag=ANY)
