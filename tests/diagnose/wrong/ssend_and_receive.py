# SPDX-License-Identifier: MIT
# run: -n 3
# says: SP101 all 3 nodes wait, and no message is on its way
# circle: 0 → 1 → 2 → 0
# hint: ssend() returns when its message has been received, and node 1 waits for something else.
"""A synchronous send to a node that waits for a third one first."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    comm.ssend("hello", 1)  # <- node 0: ssend(dest=1, tag=0)
    comm.send("go on", 2)
elif comm.rank == 1:
    comm.recv(2, tag=3)  # <- node 1: recv(source=2, tag=3)
else:
    comm.recv(0)  # <- node 2: recv(source=0, tag=ANY)
    comm.send("go on", 1, tag=3)
