# says: each node speaks for itself
# SPDX-License-Identifier: MIT
"""Every node returns the lines of all."""


def solve(comm):
    return [f"hello from node {rank} of {comm.size}" for rank in range(comm.size)]
