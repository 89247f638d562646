# SPDX-License-Identifier: MIT
"""Exercise 5: the values of all nodes travel once around a ring."""

import spcomm


def solve(comm, value):
    """Return the values in the order in which this node sees them, its own first, then its left neighbour's."""
    right = (comm.rank + 1) % comm.size
    left = (comm.rank - 1) % comm.size
    seen = [value]
    for _ in range(comm.size - 1):
        comm.send(seen[-1], dest=right)
        seen.append(comm.recv(source=left))
    return seen


if __name__ == "__main__":
    comm = spcomm.startup()
    print(solve(comm, "abcdefgh"[comm.rank % 8]))
