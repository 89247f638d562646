# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""A probe waits for what is sent after it."""

import spcomm

comm = spcomm.startup()
other = 1 - comm.rank
message = comm.probe(other, tag=5)  # <- node 0: recv(source=1, tag=5) | node 1: recv(source=0, tag=5)
comm.send("here", other, tag=5)
