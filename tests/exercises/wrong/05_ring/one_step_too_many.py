# says: It has seen 2 of 1 values
# SPDX-License-Identifier: MIT
"""Goes round until its own value is back."""


def solve(comm, value):
    seen = [value]
    for _ in range(comm.size):
        comm.send(seen[-1], dest=(comm.rank + 1) % comm.size)
        seen.append(comm.recv(source=(comm.rank - 1) % comm.size))
    return seen
