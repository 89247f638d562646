# SPDX-License-Identifier: MIT
# run: -n 2 --rendezvous 0
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: With --rendezvous, send() returns when its message has been received: every node sends first.
"""Two sends that meet: with --rendezvous, a send waits for its receiver."""

import spcomm

comm = spcomm.startup()
other = 1 - comm.rank
comm.send([comm.rank] * 1000, other)  # <- node 0: send(dest=1, tag=0) | node 1: send(dest=0, tag=0)
assert comm.recv(other) == [other] * 1000
