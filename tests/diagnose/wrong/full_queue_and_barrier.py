# SPDX-License-Identifier: MIT
# run: -n 2 --queue-limit 64K --arena 0
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: Node 0 sends more to node 1 than the queues hold, and nobody receives it.
"""Node 0 sends more than the queues hold; node 1 receives only after a barrier."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    for _ in range(1000):
        comm.send(bytes(10_000), 1)  # <- node 0: send(dest=1, tag=0)
comm.barrier()  # <- node 1: barrier()
if comm.rank == 1:
    for _ in range(1000):
        comm.recv(0)
