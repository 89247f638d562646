# SPDX-License-Identifier: MIT
# run: -n 3 --rendezvous 1M
# says: SP101 all 3 nodes wait, and no message is on its way
# circle: 0 → 1 → 2 → 0
# hint: let one node receive before it sends
"""Arrays so large that their sends wait for the receivers."""

import numpy as np

import spcomm

comm = spcomm.startup()
comm.send(np.zeros(1_000_000), (comm.rank + 1) % comm.size)  # <- nodes 0-2: send(dest=rank+1, tag=0)
comm.recv((comm.rank - 1) % comm.size)
