# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node receive before it sends, or use sendrecv()
"""Two synchronous sends: each waits for the other's receive."""

import spcomm

comm = spcomm.startup()
other = 1 - comm.rank
comm.ssend("hello", other)  # <- node 0: ssend(dest=1, tag=0) | node 1: ssend(dest=0, tag=0)
comm.recv(other)
