# SPDX-License-Identifier: MIT
"""Conway's game of life on a torus: the strips of the nodes form a ring, and the last is the first one's neighbour.

    spcomm run -n 4 10_life.py [GENERATIONS [ROWS]]

Look: the glider walks out of one node's strip into the next, and comes in again at the top, unchanged.
Try: another start (`np.random.default_rng(1).integers(2, size=...)`), or count the living cells at each step.
"""

import sys

import numpy as np

import spcomm

COLUMNS = 48


def beginning(rows):
    """A glider and an R-pentomino, as far as there is room."""
    board = np.zeros((rows, COLUMNS), np.uint8)
    for shape, top, left in ([".#.", "..#", "###"], 0, 2), ([".##", "##.", ".#."], rows // 2, 24):
        for number, line in enumerate(shape):
            board[(top + number) % rows, left : left + 3] |= np.array([*line]) == "#"
    return board


def step(board):
    """The next generation of all rows but the first and the last."""
    threes = board + np.roll(board, 1, axis=1) + np.roll(board, -1, axis=1)
    around = threes[:-2] + threes[1:-1] + threes[2:]  # including the cell itself
    return ((around == 3) | ((around == 4) & (board[1:-1] == 1))).astype(np.uint8)


comm = spcomm.startup()
generations = int(sys.argv[1]) if len(sys.argv) > 1 else 80
rows = int(sys.argv[2]) if len(sys.argv) > 2 else 24
strips = min(comm.size, rows)
above, below = ((comm.rank + way) % strips if comm.rank < strips else spcomm.PROC_NULL for way in (-1, 1))
first, last = (min(rank, strips) * rows // strips for rank in (comm.rank, comm.rank + 1))
mine = beginning(rows)[first:last]

for _ in range(generations if comm.rank < strips else 0):
    under = comm.sendrecv(mine[0], above, source=below)
    over = comm.sendrecv(mine[-1], below, source=above)
    mine = step(np.vstack([over, mine, under]))

parts = comm.gather(mine)
if comm.rank == 0:
    board, alone = np.concatenate(parts), beginning(rows)
    for upper, lower in zip(board[::2], board[1::2], strict=False):  # two rows on a line
        print("".join(" ▀▄█"[u + 2 * d] for u, d in zip(upper, lower, strict=True)).rstrip())
    for _ in range(generations):
        alone = step(np.pad(alone, [(1, 1), (0, 0)], mode="wrap"))
    if not np.array_equal(board, alone):
        raise SystemExit(f"wrong: one node finds another board after {generations} generations")
    print(f"checked: one node finds the same {board.sum()} living cells after {generations} generations")
