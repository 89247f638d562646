# SPDX-License-Identifier: MIT
"""Numbers go to the node that collects their kind. Nobody knows how many will come."""

import spcomm

comm = spcomm.startup()
numbers = comm.rng(seed=1).integers(0, 1000, size=5 + 3 * comm.rank)

for number in numbers:
    comm.coordinated_send(int(number), dest=int(number) % comm.size)

kept = [message.data for message in comm.coordinated_messages()]
assert all(number % comm.size == comm.rank for number in kept)
print(f"node {comm.rank} sent {len(numbers)} and keeps {len(kept)}")

sent, received = comm.global_sum((len(numbers), len(kept)))
if comm.rank == 0:
    print(f"{sent} sent, {received} received")
