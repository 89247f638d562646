# SPDX-License-Identifier: MIT
"""Heat on a plate: each node has a strip of rows and, above and below it, a copy of its neighbours' rows.

    spcomm run -n 4 09_heat_plate.py [STEPS [PICTURE.png]]

Look: whole rows travel, and `out=` puts them where they belong.
Try: strips of columns instead. Why are they slower? (`spcomm run --stats` shows how long each node waits.)
"""

import sys

import numpy as np
import picture

import spcomm

ROWS, COLUMNS = 320, 480  # of the plate, without its rim, which stays at 0 degrees


def hot_plate():
    """A hot disc and a hot bar on a cold plate, shape (ROWS + 2, COLUMNS + 2)."""
    y, x = np.mgrid[: ROWS + 2, : COLUMNS + 2]
    disc = (y - 110) ** 2 + (x - 150) ** 2 < 60**2
    return np.where(disc, 100.0, 60.0 * (abs(y - 220) < 25) * (abs(x - 320) < 120))


def step(u):
    """One step in time: each inner point moves towards the mean of its four neighbours."""
    u[1:-1, 1:-1] += 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])


comm = spcomm.startup()
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 500
strips = min(comm.size, ROWS)  # a node without rows has no neighbours either
first, last = (min(rank, strips) * ROWS // strips for rank in (comm.rank, comm.rank + 1))
u = hot_plate()[first : last + 2].copy()
above = comm.rank - 1 if 0 < comm.rank < strips else spcomm.PROC_NULL  # PROC_NULL: no message
below = comm.rank + 1 if comm.rank + 1 < strips else spcomm.PROC_NULL

comm.barrier()  # all start the clock together
begin = comm.time()
for _ in range(steps):
    comm.sendrecv(u[1], above, source=below, out=u[-1])
    comm.sendrecv(u[-2], below, source=above, out=u[0])
    step(u)
parts = comm.gather(u[1:-1])

if comm.rank == 0:
    print(f"{steps} steps of {ROWS} x {COLUMNS} points on {comm.size} nodes: {comm.time() - begin:.3f} s")
    plate, alone = np.pad(np.concatenate(parts), ((1, 1), (0, 0))), hot_plate()
    begin = comm.time()
    for _ in range(steps):
        step(alone)
    print(f"the same on one node: {comm.time() - begin:.3f} s; the middle has {plate[160, 240]:.2f} degrees")
    if not np.array_equal(plate, alone):
        raise SystemExit(f"wrong: {abs(plate - alone).max()} degrees from what one node finds")
    print("checked: one node finds the same, to the last bit")
    if len(sys.argv) > 2:
        print(f"picture: {picture.save_png(sys.argv[2], plate)}")
