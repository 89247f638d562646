# says: expected 'hello from node 0 of 1'
# SPDX-License-Identifier: MIT
"""Knows how many nodes its author has started."""


def solve(comm):
    return f"hello from node {comm.rank} of 4"
