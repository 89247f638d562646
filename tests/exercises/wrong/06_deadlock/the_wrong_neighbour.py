# says: expected 'letter
# SPDX-License-Identifier: MIT
"""Exchanges with the right neighbour."""


def solve(comm, value):
    right = (comm.rank + 1) % comm.size
    left = (comm.rank - 1) % comm.size
    return comm.sendrecv(value, left, source=right)
