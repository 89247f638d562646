# says: node 1 returned None
# SPDX-License-Identifier: MIT
"""Node 0 speaks for all."""


def solve(comm):
    if comm.rank == 0:
        return f"hello from node {comm.rank} of {comm.size}"
