# SPDX-License-Identifier: MIT
# run: -n 4
# says: SP101 all 4 nodes wait, and no message is on its way
# circle: 0 → 3 → 0
# hint: Nodes 0-2 wait in gather(root=0) for node 3, which must call it, too
"""Node 3 waits for the answer first."""

import numpy as np

import spcomm

comm = spcomm.startup()
part = np.zeros(100_000)
if comm.rank == 3:
    comm.recv(0)  # <- node 3: recv(source=0, tag=ANY)
whole = comm.gather(part)  # <- nodes 0-2: gather(root=0)
if comm.rank == 0:
    comm.send(len(whole), 3)
