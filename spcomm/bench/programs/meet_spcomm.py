# SPDX-License-Identifier: MIT
"""Imports NumPy and meets once; node 0 prints how many met."""

import numpy as np

import spcomm

comm = spcomm.startup()
comm.barrier()
if comm.rank == 0:
    print(np.int64(comm.size))
