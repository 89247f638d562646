# SPDX-License-Identifier: MIT
"""Heat in a rod: each node has a piece, and before each step it sends its two end cells to its neighbours.

    spcomm run -n 4 08_heat_rod.py [CELLS [STEPS]]

The cells beside a piece, which belong to the neighbours, are copied into *ghost cells* at its ends.
Look: `sendrecv` to the right, then to the left: no order of sends and receives can be wrong. At the ends of the rod
the neighbour is PROC_NULL: nothing is sent, and the call returns None.
Try: exchange only before every second step. How many ghost cells does that need?
"""

import sys

import numpy as np

import spcomm


def step(u):
    """A step in time of the inner cells; the outermost two are ghosts, or the rod's ends, which never change."""
    u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])


comm = spcomm.startup()
cells = int(sys.argv[1]) if len(sys.argv) > 1 else 100
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
pieces = min(comm.size, cells)  # a node without cells has no neighbours either
right = comm.rank + 1 if comm.rank + 1 < pieces else spcomm.PROC_NULL
left = comm.rank - 1 if 0 < comm.rank < pieces else spcomm.PROC_NULL

whole = np.zeros(cells + 2)
whole[0] = 100.0  # the left end is kept hot, the right one cold
first, last = (min(rank, pieces) * cells // pieces for rank in (comm.rank, comm.rank + 1))
u = whole[first : last + 2].copy()

for _ in range(steps):
    ghost = comm.sendrecv(float(u[-2]), right, source=left)
    u[0] = u[0] if ghost is None else ghost
    ghost = comm.sendrecv(float(u[1]), left, source=right)
    u[-1] = u[-1] if ghost is None else ghost
    step(u)

parts = comm.gather(u[1:-1])
if comm.rank == 0:
    rod = np.concatenate(parts)
    print(f"{cells} cells after {steps} steps on {comm.size} nodes:")
    print(" ".join(f"{degrees:.1f}" for degrees in rod[:: max(1, cells // 10)]), "degrees")
    for _ in range(steps):
        step(whole)
    if not np.array_equal(rod, whole[1:-1]):
        raise SystemExit(f"wrong: {abs(rod - whole[1:-1]).max()} degrees from what one node finds")
    print("checked: one node finds the same, to the last bit")
