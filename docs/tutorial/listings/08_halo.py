# SPDX-License-Identifier: MIT
"""Heat in a rod, divided among the nodes: in each step neighbours exchange the cells at their borders."""

import numpy as np

import spcomm

CELLS, STEPS = 120, 500

comm = spcomm.startup()
left = comm.rank - 1 if comm.rank > 0 else spcomm.PROC_NULL
right = comm.rank + 1 if comm.rank < comm.size - 1 else spcomm.PROC_NULL


def next_step(rod):
    """All cells but the first and the last: those belong to neighbours, or are the ends of the rod."""
    return rod[1:-1] + 0.25 * (rod[:-2] - 2 * rod[1:-1] + rod[2:])


share = np.array_split(np.arange(CELLS), comm.size)[comm.rank]
rod = np.zeros(len(share) + 2)  # one cell of each neighbour beside mine
if comm.rank == 0:
    rod[0] = 100.0  # the left end is hot

for _ in range(STEPS):
    # To the right goes my last cell, from the left comes the neighbour's; then the other way round.
    from_left = comm.sendrecv(rod[-2], dest=right, source=left)
    from_right = comm.sendrecv(rod[1], dest=left, source=right)
    rod[0] = rod[0] if from_left is None else from_left
    rod[-1] = rod[-1] if from_right is None else from_right
    rod[1:-1] = next_step(rod)

whole = comm.gather(rod[1:-1])
if comm.rank == 0:
    alone = np.zeros(CELLS + 2)
    alone[0] = 100.0
    for _ in range(STEPS):
        alone[1:-1] = next_step(alone)
    same = np.array_equal(np.concatenate(whole), alone[1:-1])
    print(f"{whole[0][0]:.2f} degrees at the hot end; the same as on one node: {same}")
