# SPDX-License-Identifier: MIT
# run: -n 4
# says: SP101 all 4 nodes wait, and no message is on its way
# circle: 0 → 1 → 2 → 3 → 0
# hint: All of these receive, and nobody is left who could send to them.
"""One node of the ring is in another branch, at a line of its own."""

import spcomm

comm = spcomm.startup()
following = (comm.rank + 1) % comm.size
if comm.rank == 0:
    comm.recv(1, tag=3)  # <- node 0: recv(source=1, tag=3)
else:
    comm.recv(following, tag=3)  # <- nodes 1-3: recv(source=rank+1, tag=3)
comm.send("go on", (comm.rank - 1) % comm.size, tag=3)
