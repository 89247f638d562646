# SPDX-License-Identifier: MIT
"""One table for all nodes, in memory once."""

import numpy as np

import spcomm

comm = spcomm.startup()
table = np.arange(1_000_000.0) if comm.rank == 0 else None
table = comm.bcast(table, copy=False)

print(f"node {comm.rank}: {table.nbytes} bytes, writable: {table.flags.writeable}")
