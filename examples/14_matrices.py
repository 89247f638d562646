# SPDX-License-Identifier: MIT
"""C = A @ B by SUMMA: each node has a block of each matrix, and never more than a strip of the others' blocks.

    spcomm run -n 4 14_matrices.py [SIZE]

The nodes stand in a grid of p rows and q columns. C is a sum of products of a few columns of A with as many rows of B.
Strips of A are sent along the rows of the grid, strips of B along its columns (R. van de Geijn, J. Watts, SUMMA:
Scalable Universal Matrix Multiplication Algorithm, Concurrency: Practice and Experience 9 (4), 1997).
Look: `split` makes a communicator of each row and column of the grid; `bcast` on it concerns no other node.
Try: `spcomm run -n 6` and `-n 7`: which grid is better, 2 x 3 or 1 x 7?
"""

import math
import sys

import numpy as np

import spcomm


def part(size, number, parts):
    """The indices in the given one of so many parts, as equal as can be."""
    return np.arange(number * size // parts, (number + 1) * size // parts)


def some_of_a(rows, columns):
    return np.cos(np.outer(rows, columns))


def some_of_b(rows, columns):
    return np.sin(np.outer(rows + 1, columns + 2))


comm = spcomm.startup()
size = int(sys.argv[1]) if len(sys.argv) > 1 else 300
m, k, n = size, size + 7, size + 3  # A has m x k elements, B has k x n
p = max(d for d in range(1, math.isqrt(comm.size) + 1) if comm.size % d == 0)  # as square as possible
q = comm.size // p
row, column = comm.split(comm.rank // q), comm.split(comm.rank % q)
a = some_of_a(part(m, column.rank, p), part(k, row.rank, q))  # my rank in a row is the number of my column
b = some_of_b(part(k, column.rank, p), part(n, row.rank, q))
c = np.zeros((a.shape[0], b.shape[1]))

strips = math.lcm(p, q)  # so that each strip of A is in one column of the grid, and each one of B in one row
for strip in range(strips):
    there, here = strip * q // strips, strip * p // strips  # of A in this column, of B in this row
    strip_a = a[:, part(k, strip, strips) - there * k // q] if there == row.rank else None
    strip_b = b[part(k, strip, strips) - here * k // p] if here == column.rank else None
    c += row.bcast(strip_a, there, copy=False) @ column.bcast(strip_b, here, copy=False)

blocks = comm.gather(c)
if comm.rank == 0:
    print(f"({m} x {k}) @ ({k} x {n}) on a grid of {p} x {q} nodes, in {strips} steps")
    whole = np.block([blocks[first : first + q] for first in range(0, comm.size, q)])
    alone = some_of_a(np.arange(m), np.arange(k)) @ some_of_b(np.arange(k), np.arange(n))
    if not np.allclose(whole, alone):
        raise SystemExit(f"wrong: {abs(whole - alone).max()} from what one node finds")
    print("checked: one node finds the same")
