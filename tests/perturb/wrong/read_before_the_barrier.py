# SPDX-License-Identifier: MIT
# run: -n 4 --perturb
"""All nodes write their part of a shared file; node 0 adds them up on the wrong side of the barrier."""

import os

import numpy as np

import spcomm

comm = spcomm.startup()
path = f"parts-{os.getppid()}"
if comm.rank == 0:
    np.zeros(comm.size).tofile(path)
comm.barrier()
parts = np.memmap(path, dtype=float, mode="r+")
parts[comm.rank] = 1
total = parts.sum()
comm.barrier()
if comm.rank == 0:
    assert total == comm.size, total
