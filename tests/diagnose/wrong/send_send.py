# SPDX-License-Identifier: MIT
# run: -n 2 --rendezvous 0
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node receive before it sends, or use sendrecv()
"""Two sends that meet: with --rendezvous, a send waits for its receiver."""

import spcomm

comm = spcomm.startup()
other = 1 - comm.rank
comm.send([comm.rank] * 1000, other)  # <- nodes 0-1: send(dest=rank+1, tag=0)
assert comm.recv(other) == [other] * 1000
