# SPDX-License-Identifier: MIT
"""Exercise 1: each node returned its own text."""

from spcomm.learn.case import Case, Wrong, same, short


def cases(rng):
    for nodes in range(1, 8):
        yield Case(nodes)


def judge(case, outcome):
    n = case.nodes
    for rank, value in enumerate(outcome.values):
        expected = f"hello from node {rank} of {n}"
        if not same(value, expected):
            raise Wrong(
                f"node {rank} returned {short(value)}; expected {expected!r}. {advice(value, rank, n)}"
            )


def advice(value, rank, n):
    if value is None:
        return "Each node has to return a text, not only one of them: is the return within an if?"
    if not isinstance(value, str):
        return "It has to be one text: each node speaks for itself alone."
    if value == f"hello from node {rank + 1} of {n}":
        return "The first node has rank 0: take comm.rank as it is."
    return "comm.rank and comm.size say which node it is, and how many there are."
