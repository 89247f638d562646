# SPDX-License-Identifier: MIT
"""π by adding up strips: spcomm run -n 4 with_spcomm.py"""

import numpy as np

import spcomm

STRIPS = 4_000_000

comm = spcomm.startup()
x = (np.arange(comm.rank, STRIPS, comm.size) + 0.5) / STRIPS
pi = comm.global_sum(float(np.sum(4 / (1 + x * x))) / STRIPS)
if comm.rank == 0:
    print(f"π ≈ {pi:.10f}")
