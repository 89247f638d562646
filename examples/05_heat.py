# SPDX-License-Identifier: MIT
"""Heat spreads over a plate. Each node has a strip of rows and, above and below it, a copy of its neighbours' rows.

spcomm run -n 8 05_heat.py [STEPS [PICTURE.png]]
"""

import sys
from time import perf_counter

import numpy as np
import picture

import spcomm

ROWS, COLUMNS = 320, 480  # of the plate, without its rim, which stays at 0 degrees


def hot_plate():
    """The beginning, shape (ROWS + 2, COLUMNS + 2): a hot disc and a hot bar on a cold plate."""
    y, x = np.mgrid[: ROWS + 2, : COLUMNS + 2]
    disc = (y - 110) ** 2 + (x - 150) ** 2 < 60**2
    bar = (abs(y - 220) < 25) & (abs(x - 320) < 120)
    return np.where(disc, 100.0, np.where(bar, 60.0, 0.0))


def step(u):
    """One step in time: each inner point moves towards the mean of its four neighbours."""
    u[1:-1, 1:-1] += 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])


comm = spcomm.startup()
if comm.size > ROWS:
    raise SystemExit(f"{comm.size} nodes for {ROWS} rows: at most one node a row")
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
bounds = [1 + rank * ROWS // comm.size for rank in range(comm.size + 1)]
u = hot_plate()[bounds[comm.rank] - 1 : bounds[comm.rank + 1] + 1].copy()
above = comm.rank - 1 if comm.rank > 0 else spcomm.PROC_NULL  # nobody there: nothing is sent or received
below = comm.rank + 1 if comm.rank < comm.size - 1 else spcomm.PROC_NULL

comm.barrier()  # all start the clock together
begin = perf_counter()
for _ in range(steps):
    comm.sendrecv(u[1], above, source=below, out=u[-1])
    comm.sendrecv(u[-2], below, source=above, out=u[0])
    step(u)
hottest = comm.global_max(float(u.max()))
spent = perf_counter() - begin

if comm.rank > 0:
    comm.send(u[1:-1], 0)
else:
    plate = hot_plate()
    plate[bounds[0] : bounds[1]] = u[1:-1]
    for rank in range(1, comm.size):
        plate[bounds[rank] : bounds[rank + 1]] = comm.recv(rank)
    print(f"after {steps} steps the hottest of {ROWS} x {COLUMNS} points has {hottest:.2f} degrees")
    print(f"computed by {comm.size} nodes in {spent:.3f} s")

    begin, alone = perf_counter(), hot_plate()
    for _ in range(steps):
        step(alone)
    print(f"the same on one node: {perf_counter() - begin:.3f} s")
    if not np.array_equal(plate, alone):
        raise SystemExit(f"wrong: {abs(plate - alone).max()} degrees from what one node finds")
    print("checked: one node finds the same, to the last bit")
    print(f"picture: {picture.save_png(sys.argv[2] if len(sys.argv) > 2 else 'heat.png', plate)}")
