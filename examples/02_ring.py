# SPDX-License-Identifier: MIT
"""A message goes round all nodes, and each node signs it: point-to-point messages in order.

    spcomm run -n 4 02_ring.py

Look: only node 0 sends before it receives. One node has to begin. The first lap is slower than the others.
Try: let node 0 receive first, too. Within a second the run ends with a report: which node waits for which, and where.
"""

from time import perf_counter

import spcomm

comm = spcomm.startup()
right = (comm.rank + 1) % comm.size  # alone, a node is its own neighbour

laps = []
for _ in range(11):
    comm.barrier()  # all are there when the clock starts
    begin = perf_counter()
    if comm.rank == 0:
        comm.send(["node 0"], right)
        signatures = comm.recv()  # it has been everywhere
    else:
        signatures = comm.recv()
        comm.send([*signatures, f"node {comm.rank}"], right)
    laps.append((perf_counter() - begin) * 1e6)

if comm.rank == 0:
    print(" → ".join(signatures), "→ node 0")
    # In the first lap the nodes have only just started, and some still wait for a core.
    print(f"the first lap took {laps[0]:.0f} µs, the fastest of the next ten {min(laps[1:]):.0f} µs")
    if signatures != [f"node {rank}" for rank in range(comm.size)]:
        raise SystemExit(f"wrong: a signature is missing in {signatures}")
    print(f"checked: all {comm.size} have signed, in order")
