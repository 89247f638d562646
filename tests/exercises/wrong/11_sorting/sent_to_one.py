# says: has received nearly all numbers
# SPDX-License-Identifier: MIT
"""Node 0 sorts everything; the messages are its own."""

from itertools import chain


def solve(comm, mine):
    if comm.rank:
        comm.send(mine, 0)
        return comm.recv(0)
    whole = sorted(chain(mine, *(comm.recv(node) for node in range(1, comm.size))))
    shares = [
        whole[rank * len(whole) // comm.size : (rank + 1) * len(whole) // comm.size]
        for rank in range(comm.size)
    ]
    for node in range(1, comm.size):
        comm.send(shares[node], node)
    return shares[0]
