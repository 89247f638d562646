# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""A wait with a time limit has passed; the one after it has none."""

import spcomm

comm = spcomm.startup()
other = 1 - comm.rank
try:
    comm.recv(other, timeout=0.05)
except spcomm.WaitTimeoutError:
    comm.recv(other)  # <- node 0: recv(source=1, tag=ANY) | node 1: recv(source=0, tag=ANY)
