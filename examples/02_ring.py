# SPDX-License-Identifier: MIT
"""A list goes once round all nodes, and each of them signs it.

spcomm run -n 4 02_ring.py
"""

from time import perf_counter

import spcomm

comm = spcomm.startup()
right = (comm.rank + 1) % comm.size  # alone, a node is its own neighbour

if comm.rank == 0:
    begin = perf_counter()
    comm.send(["node 0"], right)
    signatures = comm.recv()  # it has been everywhere
    spent = perf_counter() - begin
    print(" → ".join(signatures), "→ node 0")
    print(f"{comm.size} hops in {spent * 1e6:.0f} µs")
    if signatures != [f"node {rank}" for rank in range(comm.size)]:
        raise SystemExit(f"a signature is missing: {signatures}")
else:
    signatures = comm.recv()
    comm.send([*signatures, f"node {comm.rank}"], right)
