# SPDX-License-Identifier: MIT
"""Rows of very different cost, divided in three ways: in blocks, in turn like cards, and one by one on request.

    spcomm run -n 4 06_mandelbrot.py [PICTURE.png]

Look: how much more than the mean the busiest node computes. In the end all nodes wait for the last one.
Try: run another program beside it that keeps a core busy. Only with pull does a slow node get fewer rows.
"""

import sys

import numpy as np
import picture

import spcomm

ROWS, COLUMNS, LIMIT = 160, 240, 150
ASK, ROW = 1, 2  # tags


def iterations(row):
    """For each point of a row the steps until z = z² + c leaves the circle of radius 2, at most LIMIT."""
    c = np.linspace(-2.2, 1.0, COLUMNS) + 1j * (row / (ROWS - 1) * 2.1 - 0.75)
    z, steps = np.zeros_like(c), np.zeros(COLUMNS, int)
    while (inside := (abs(z) <= 2) & (steps < LIMIT)).any():
        z[inside] = z[inside] ** 2 + c[inside]
        steps += inside
    return steps


def pull():
    """The rows that this node gets: the next one whenever it asks for one."""
    while comm.rank > 0 and (row := comm.sendrecv(None, 0, source=0, tag=ASK, recv_tag=ROW)) is not None:
        yield row
    for row in rest if comm.rank == 0 else ():
        yield row
        comm.poll()  # node 0 answers here, and while it waits


comm = spcomm.startup()
rest = iter(range(ROWS))  # used on node 0: the rows that no node has got yet
comm.handler(ASK)(lambda message: comm.send(next(rest, None), message.source, tag=ROW))
first, last = comm.rank * ROWS // comm.size, (comm.rank + 1) * ROWS // comm.size
alone = [iterations(row) for row in range(ROWS)] if comm.rank == 0 else None
ways = {"blocks": range(first, last), "in turn": range(comm.rank, ROWS, comm.size), "pull": pull()}
for name, rows in ways.items():
    mine = {row: iterations(row) for row in rows}
    parts = comm.gather(mine)
    if comm.rank == 0:
        work = [sum(int(steps.sum()) for steps in part.values()) for part in parts]
        print(f"{name:8s} the busiest node has computed {max(work) / np.mean(work):.2f} times the mean")
        whole = {row: steps for part in parts for row, steps in part.items()}
        if not np.array_equal([whole.get(row) for row in range(ROWS)], alone):
            raise SystemExit(f"wrong: {name} gives another picture than one node")
if comm.rank == 0:
    print("checked: all three give the picture of one node")
    if len(sys.argv) > 1:
        picture.save_png(sys.argv[1], np.log1p(np.array(alone)))
