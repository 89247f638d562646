# SPDX-License-Identifier: MIT
"""The box of each node, and what it costs to talk to a near node and to a far one."""

import spcomm

ROUNDS = 200

comm = spcomm.startup()
print(f"node {comm.rank} is number {comm.local_rank} in box {comm.box}")
comm.barrier()


def half_a_round_trip(a, b):
    """Seconds from node a to node b."""
    begin = comm.time()
    for _ in range(ROUNDS):
        if comm.rank == a:
            comm.send(1, dest=b)
            comm.recv(source=b)
        elif comm.rank == b:
            comm.recv(source=a)
            comm.send(1, dest=a)
    return (comm.time() - begin) / (2 * ROUNDS)


boxes = [node.box for node in comm.layout]
near = next((rank for rank in range(1, comm.size) if boxes[rank] == boxes[0]), None)
far = next((rank for rank in range(1, comm.size) if boxes[rank] != boxes[0]), None)
for name, partner in (("near", near), ("far", far)):
    if partner is not None:
        seconds = half_a_round_trip(0, partner)
        if comm.rank == 0:
            print(f"{name}: from node 0 to node {partner} in {seconds * 1e6:.1f} µs")
