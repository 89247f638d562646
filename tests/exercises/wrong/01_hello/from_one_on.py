# says: The first node has rank 0
# SPDX-License-Identifier: MIT
"""Counts nodes from 1."""


def solve(comm):
    return f"hello from node {comm.rank + 1} of {comm.size}"
