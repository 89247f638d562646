# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives, or use sendrecv()
"""Two nodes receive from each other before they send."""

import spcomm

comm = spcomm.startup()
other = 1 - comm.rank
answer = comm.recv(other)  # <- node 0: recv(source=1, tag=ANY) | node 1: recv(source=0, tag=ANY)
comm.send(comm.rank, other)
