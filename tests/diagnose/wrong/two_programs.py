# SPDX-License-Identifier: MIT
# with: helpers/second.py
# run: -n 1 {} : -n 2 helpers/second.py
# says: SP101 all 3 nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""Two programs in one run, each of which waits for the other."""

import spcomm

comm = spcomm.startup()
comm.recv(1)  # <- node 0: recv(source=1, tag=ANY)
