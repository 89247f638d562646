# SPDX-License-Identifier: MIT
"""Exercise 7: count, mean and maximum on all nodes, also where some have no values."""

import math

from spcomm.learn.case import Case, Wrong, close, counted, same, short


def cases(rng):
    for nodes, low, high, empty in [
        (1, -9, 9, ()),
        (2, 0, 20, ()),
        (3, -20, 20, (1,)),
        (4, -50, -10, (0, 3)),
        (7, -50, 50, (0, 1, 2, 4, 5, 6)),
    ]:
        lists = [
            [] if rank in empty else [rng.uniform(low, high) for _ in range(rng.randint(1, 5))]
            for rank in range(nodes)
        ]
        yield Case(nodes, each=[{"values": values} for values in lists], name=name(nodes, low, high, empty))


def name(nodes, low, high, empty):
    words = f"{counted(nodes, 'node')}, values from {low} to {high}"
    return words + f", none on {len(empty)} of them" * bool(empty)


def judge(case, outcome):
    lists = [arguments["values"] for arguments in case.each]
    together = [value for values in lists for value in values]
    expected = (len(together), math.fsum(together) / len(together), max(together))
    for rank, found in enumerate(outcome.values):
        if not close(found, expected):
            raise Wrong(
                f"node {rank} returned {short(found)}; expected {expected} ({case.name}). "
                + what_is_wrong(found, expected, lists[rank])
            )


def what_is_wrong(found, expected, mine):
    if not isinstance(found, tuple) or len(found) != 3:
        return "All nodes have to return a tuple of three, also those without values."
    if mine and len(mine) != expected[0] and same(found[0], len(mine)):
        return "These are the values of this node only: all nodes have to combine theirs."
    if found[2] is None:
        return "The largest value is missing on a node that has no values; it has to take part in global_max."
    if not close(found[2], expected[2]):
        if same(found[2], 0):
            return "No node has 0: what does a node without values give to global_max? It must be less than all values."
        return "The third, the largest of all values, is wrong."
    return "The first two are the number of values on all nodes, and their mean."
