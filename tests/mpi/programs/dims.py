# SPDX-License-Identifier: MIT
"""Prints [nodes, dims, answer] of many calls of MPI_Dims_create as JSON; answer is null for MPI_ERR_DIMS."""

import itertools
import json

from mpi4py import MPI


def ask(nodes, dims):
    try:
        return MPI.Compute_dims(nodes, list(dims))
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_DIMS
        return None


cases = [(nodes, [0] * count) for nodes in range(1, 129) for count in (1, 2, 3, 4, 5)]
cases += [
    (nodes, list(dims)) for nodes in (6, 12, 60) for dims in itertools.product((0, 1, 2, 3, 5), repeat=3)
]
cases += [(nodes, [0] * 3) for nodes in (360, 720, 1024, 1000, 1001, 997)]
print(json.dumps([(nodes, dims, ask(nodes, dims)) for nodes, dims in cases]))
