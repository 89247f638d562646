# SPDX-License-Identifier: MIT
"""A pipeline: every item passes through all nodes, and at any time each node works on a different one.

    spcomm run -n 4 17_pipeline.py [ITEMS]

The items are arrays of x. Horner's rule, y = y * x + c for each coefficient c of a polynomial, is divided among the
nodes: each applies some of the coefficients and hands x and y on. Node 0 feeds it, the last one collects.
Look: `spcomm run -n 4 --trace t.json ...`, then `spcomm trace t.json --html`: how the pipeline fills and drains.
Try: give node 1 twice as many coefficients as the others. How long do the others wait for each item?
"""

import sys

import numpy as np

import spcomm

COEFFICIENTS = 1.0 / (1 + np.arange(24.0))  # of the highest power first
WIDTH = 5_000  # x in an item


def horner(x, y, coefficients):
    for c in coefficients:
        y = y * x + c
    return y


comm = spcomm.startup()
items = int(sys.argv[1]) if len(sys.argv) > 1 else 40
before = comm.rank - 1
after = comm.rank + 1 if comm.rank + 1 < comm.size else spcomm.PROC_NULL
first, last = (rank * len(COEFFICIENTS) // comm.size for rank in (comm.rank, comm.rank + 1))

collected = []
for item in range(items):
    if comm.rank == 0:
        x = np.linspace(item, item + 1, WIDTH) / items
        y = np.zeros(WIDTH)
    else:
        x, y = comm.recv(before)
    y = horner(x, y, COEFFICIENTS[first:last])
    comm.send((x, y), after)  # it does not wait: the next item can come
    if after == spcomm.PROC_NULL:
        collected.append(float(y.sum()))

collected = comm.bcast(collected, comm.size - 1)
if comm.rank == 0:
    print(
        f"{items} items of {WIDTH} numbers went through {comm.size} nodes; the sum of all results is", end=" "
    )
    print(f"{sum(collected):.6g}")
    ways = (np.linspace(item, item + 1, WIDTH) / items for item in range(items))
    if collected != [float(horner(x, np.zeros(WIDTH), COEFFICIENTS).sum()) for x in ways]:
        raise SystemExit("wrong: one node finds something else")
    print("checked: one node finds the same, to the last bit and in the same order")
