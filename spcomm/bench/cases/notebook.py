# SPDX-License-Identifier: MIT
"""Nodes that stay alive, as under %%spcomm: from nothing to their first results, and a call of all of them.

Beside `multiprocessing.Pool` and, where it is installed, ipyparallel, whose numbers stand in spcomm's column, too.
"""

from spcomm.bench.rows import MILLISECONDS, Goal, Row

ORDER = 13
NODES = (4,)
START_S = 0.5
OTHERS = {"pool": "multiprocessing.Pool", "ipyparallel": "ipyparallel"}


def rows(nodes: tuple[int, ...]) -> list[Row]:
    return [row for n in nodes for what in ("start", "call") for row in whose(n, what)]


def whose(n: int, what: str) -> list[Row]:
    title = f"{n} nodes start and answer, Cluster" if what == "start" else f"a call of {n} nodes, Cluster.run"
    ours = row(n, what, "spcomm", title, Goal(None, seconds=START_S) if what == "start" else None)
    return [ours, *(row(n, what, name, f"… {text}", None) for name, text in OTHERS.items())]


def row(n: int, what: str, name: str, title: str, goal: Goal | None) -> Row:
    parameters = {"whose": name, "what": what}
    key = f"notebook-{what}-{name}-{n}"
    return Row(
        key, title, "cluster", n, parameters, goal, peers=False, unit=MILLISECONDS, program=f"cluster {name}"
    )
