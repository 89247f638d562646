# SPDX-License-Identifier: MIT
"""Judges exercise 15: every value, and that the maps stay where they are."""

from spcomm.learn.case import Case, Wrong, same, short

P = 1_000_003
WHOLE_LISTS = "allgather gather bcast alltoall send ssend sendrecv".split()


def cases(rng):
    for nodes in (3, 1, 2, 4, 5, 6, 7, 8):
        lists = [
            [(rng.randrange(2, P), rng.randrange(1, P)) for _ in range(rng.randint(1, 5))]
            for _ in range(nodes)
        ]
        if nodes > 4:
            lists[rng.randrange(nodes)] = []
        yield Case(nodes, {"x": rng.randrange(P)}, each=[{"maps": maps} for maps in lists])


def judge(case, outcome):
    x = case.arguments["x"]
    for rank, found in enumerate(outcome.values):
        maps, right, before = case.each[rank]["maps"], [], x
        for a, b in maps:
            x = (a * x + b) % P
            right.append(x)
        if not isinstance(found, list) or len(found) != len(maps):
            raise Wrong(
                f"node {rank} returned {short(found)}; expected a list of {len(maps)} values ({case.name})"
            )
        if not same(found, right):
            raise Wrong(
                f"node {rank} returned {short(found)}; expected {short(right)}: {why(case, rank, found, before)}"
            )
    for rank, calls in enumerate(outcome.calls):
        for name in WHOLE_LISTS:
            if calls[name]:
                raise Wrong(
                    f"node {rank} called {name}: nodes need not know the maps of others, nor wait for each other in "
                    "a row; one exscan gives each node its starting point"
                )
        if not calls["exscan"] + calls["scan"]:
            raise Wrong(f"node {rank} called neither exscan nor scan: this exercise is about them")


def why(case, rank, found, before):
    """Describe the first wrong value."""
    maps, x = case.each[rank]["maps"], case.arguments["x"]
    a, b = maps[0]
    if same(found[0], (a * before + b) % P):
        return f"the first values are right, a later one is not ({case.name})"
    if same(found[0], (a * x + b) % P):
        return (
            f"its first value is that of x = {x}, with which node 0 begins ({case.name}): what did the nodes before "
            "it make of x?"
        )
    after = before
    for c, d in maps:
        after = (c * after + d) % P
    if same(found[0], (a * after + b) % P):
        return (
            f"it begins with {after}, which is x after its own maps, and not before ({case.name}): scan includes the "
            "node itself, exscan does not"
        )
    return (
        f"it had to begin with x = {before} ({case.name}): what does `then` return for two maps, and which of them is "
        "applied first?"
    )
