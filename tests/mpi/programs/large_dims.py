# SPDX-License-Identifier: MIT
"""MPI_Dims_create of numbers with very many factorings, and of a large prime."""

import math

from mpi4py import MPI

for nodes in (2**30, 2**31 - 1, 1396755360, 2095133040, 6469693230 // 30, 1073741789):
    for count in (1, 2, 3, 5, 8, 12, 30, 31, 32, 40):
        dims = MPI.Compute_dims(nodes, count)
        assert math.prod(dims) == nodes and sorted(dims, reverse=True) == dims, (nodes, count, dims)
