# SPDX-License-Identifier: MIT
"""C = A @ B by SUMMA: each node has a block of each matrix, and never more than a strip of the others' blocks.

    spcomm run -n 6 07_summa.py [SIZE]

The nodes stand in a grid of p rows and q columns. C is a sum of products of a few columns of A with as many rows of B.
For each of them, the nodes that have those columns of A send them along the rows of the grid, and those that have the
rows of B send them along its columns (R. van de Geijn and J. Watts, SUMMA: Scalable Universal Matrix Multiplication
Algorithm, Concurrency: Practice and Experience 9 (4), 1997).
"""

import math
import sys
from time import perf_counter

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
size = int(sys.argv[1]) if len(sys.argv) > 1 else 500
m, k, n = size, size + 7, size + 3  # A has m x k elements, B has k x n
p = max(d for d in range(1, math.isqrt(comm.size) + 1) if comm.size % d == 0)  # as square as possible
q = comm.size // p
row = comm.split(comm.rank // q)  # my row of the grid; there, my rank is the number of my column
column = comm.split(comm.rank % q)

strips = math.lcm(p, q)  # so that each strip of A is in one column of the grid, and each one of B in one row
widths = [len(part(k, strip, strips)) for strip in range(strips)]
a = some_of_a(part(m, column.rank, p), part(k, row.rank, q))
b = some_of_b(part(k, column.rank, p), part(n, row.rank, q))
c = np.zeros((a.shape[0], b.shape[1]))

comm.barrier()  # all start the clock together
begin = perf_counter()
left = top = 0  # where the next strips begin in my own blocks
for strip, width in enumerate(widths):
    from_column, from_row = strip * q // strips, strip * p // strips
    columns_of_a = rows_of_b = None
    if from_column == row.rank:
        columns_of_a = a[:, left : left + width]
        left += width
    if from_row == column.rank:
        rows_of_b = b[top : top + width]
        top += width
    c += row.bcast(columns_of_a, from_column, copy=False) @ column.bcast(rows_of_b, from_row, copy=False)
comm.barrier()
spent = perf_counter() - begin

blocks = comm.gather(c)
if comm.rank == 0:
    print(f"({m} x {k}) @ ({k} x {n}) on a grid of {p} x {q} nodes, {strips} strips: {spent:.3f} s")
    whole = np.block([blocks[first : first + q] for first in range(0, comm.size, q)])
    whole_a, whole_b = some_of_a(np.arange(m), np.arange(k)), some_of_b(np.arange(k), np.arange(n))
    begin = perf_counter()
    alone = whole_a @ whole_b
    print(f"the same on one node: {perf_counter() - begin:.3f} s")
    if not np.allclose(whole, alone):
        raise SystemExit(f"wrong: {abs(whole - alone).max()} from what one node finds")
    print("OK: one node finds the same")
