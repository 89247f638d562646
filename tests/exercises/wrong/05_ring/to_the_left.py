# says: came the other way round
# SPDX-License-Identifier: MIT
"""Sends to the left."""


def solve(comm, value):
    seen = [value]
    for _ in range(comm.size - 1):
        comm.send(seen[-1], dest=(comm.rank - 1) % comm.size)
        seen.append(comm.recv(source=(comm.rank + 1) % comm.size))
    return seen
