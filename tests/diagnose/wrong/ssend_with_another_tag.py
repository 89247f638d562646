# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: Node 1 has a message from node 0 with tag 1, and waits for one of tag 2.
"""A synchronous send whose receiver looks for another tag."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    comm.ssend("hello", 1, tag=1)  # <- node 0: ssend(dest=1, tag=1)
else:
    comm.recv(0, tag=2)  # <- node 1: recv(source=0, tag=2)
