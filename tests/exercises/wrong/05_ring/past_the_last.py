# says: there is no node
# SPDX-License-Identifier: MIT
"""The last node has no right neighbour."""


def solve(comm, value):
    seen = [value]
    for _ in range(comm.size - 1):
        comm.send(seen[-1], dest=comm.rank + 1)
        seen.append(comm.recv(source=comm.rank - 1))
    return seen
