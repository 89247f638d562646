# SPDX-License-Identifier: MIT
"""A message goes once round all nodes, and each node signs it: point-to-point messages in order.

    spcomm run -n 4 02_ring.py

Look: only node 0 sends before it receives. One node has to begin.
Try: let node 0 receive first, too. Within a second the run ends with a report: which node waits for which, and where.
"""

from time import perf_counter

import spcomm

comm = spcomm.startup()
right = (comm.rank + 1) % comm.size  # alone, a node is its own neighbour

comm.barrier()  # all are there when the clock starts
if comm.rank == 0:
    begin = perf_counter()
    comm.send(["node 0"], right)
    signatures = comm.recv()  # it has been everywhere
    spent = perf_counter() - begin
    print(" → ".join(signatures), "→ node 0")
    print(f"all the way round in {spent * 1e6:.0f} µs")
    if signatures != [f"node {rank}" for rank in range(comm.size)]:
        raise SystemExit(f"wrong: a signature is missing in {signatures}")
    print(f"checked: all {comm.size} have signed, in order")
else:
    signatures = comm.recv()
    comm.send([*signatures, f"node {comm.rank}"], right)
