# SPDX-License-Identifier: MIT
"""Exercise 15: where does my part begin? A scan with an operator of our own. README.md has the task."""

import spcomm

P = 1_000_003  # all numbers are modulo this one
NOTHING = (1, 0)  # the map that changes nothing, x -> 1 * x + 0


@spcomm.op
def then(first, second):
    """Both maps in a row, as one: the left one belongs to lower ranks and is applied first."""
    a, b = first
    c, d = second
    return (c * a) % P, (a * d + b) % P  # TODO: is this c * (a * x + b) + d?


def solve(comm, maps, x):
    """Return the values after each of this node's maps."""
    mine = NOTHING
    for pair in maps:
        mine = then(mine, pair)
    # TODO: `mine` is all of this node's maps in a row. What did the nodes before this one make of x?
    values = []
    for a, b in maps:
        x = (a * x + b) % P
        values.append(x)
    return values


if __name__ == "__main__":
    comm = spcomm.startup()
    print(comm.rank, solve(comm, [(2, 1), (3, comm.rank)], x=1))
