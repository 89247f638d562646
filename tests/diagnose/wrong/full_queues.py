# SPDX-License-Identifier: MIT
# run: -n 2 --queue-limit 64K --arena 0
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: lets these sends go on, and only moves the point where it stops
"""Both send more than the queues hold, and nobody receives."""

import spcomm

comm = spcomm.startup()
other = 1 - comm.rank
for number in range(1000):
    tag = number % 2
    comm.send(bytes(10_000), other, tag)  # <- node 0: send(dest=1, …) | node 1: send(dest=0, …)
for number in range(1000):
    comm.recv(other, tag=number % 2)
