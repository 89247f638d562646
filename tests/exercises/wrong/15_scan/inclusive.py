# says: exscan does not
# SPDX-License-Identifier: MIT
"""scan in place of exscan."""

import spcomm

P = 1_000_003  # all numbers are modulo this one
NOTHING = (1, 0)  # the map that changes nothing, x -> 1 * x + 0


@spcomm.op
def then(first, second):
    """Both maps in a row, as one: the left one belongs to lower ranks and is applied first."""
    a, b = first
    c, d = second
    return (c * a) % P, (c * b + d) % P


def solve(comm, maps, x):
    """Return the values after each of this node's maps."""
    mine = NOTHING
    for pair in maps:
        mine = then(mine, pair)
    a, b = comm.scan(mine, op=then)
    x = (a * x + b) % P
    values = []
    for a, b in maps:
        x = (a * x + b) % P
        values.append(x)
    return values
