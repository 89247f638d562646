# SPDX-License-Identifier: MIT
"""Heat in a rod, neighbours exchange their ends: spcomm run -n 4 with_spcomm.py"""

import numpy as np

import spcomm

CELLS, STEPS = 240, 50

comm = spcomm.startup()
left = comm.rank - 1 if comm.rank > 0 else spcomm.PROC_NULL
right = comm.rank + 1 if comm.rank + 1 < comm.size else spcomm.PROC_NULL
u = np.zeros((comm.rank + 1) * CELLS // comm.size - comm.rank * CELLS // comm.size + 2)
u[0] = 100.0 if comm.rank == 0 else 0.0
for _ in range(STEPS):
    comm.sendrecv(u[-2:-1], right, source=left, out=u[:1])
    comm.sendrecv(u[1:2], left, source=right, out=u[-1:])
    u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
heat = comm.global_sum(float(u[1:-1].sum()))
if comm.rank == 0:
    print(f"{heat:.6f} degrees in all cells together")
