# SPDX-License-Identifier: MIT
# run: -n 3
# says: SP101 all 3 nodes wait, and no message is on its way
# circle: 0 → 1 → 2 → 0
# hint: No matching message has been sent: each of these nodes waits to receive.
"""Each node has a message, but from another node and with another tag than it waits for."""

import spcomm

comm = spcomm.startup()
right = (comm.rank + 1) % comm.size
comm.send("hello", right, tag=1)
comm.recv(right, tag=2)  # <- nodes 0-2: recv(source=rank+1, tag=2)
