# SPDX-License-Identifier: MIT
"""Arrays among all nodes: summed, from one to all, and from each to each."""

from spcomm.bench.cases.arrays import KIB, MIB, both, label
from spcomm.bench.rows import Goal, Row

ORDER = 8
NODES = (2, 4)
SUMS = {(MIB, 2): 0.8, (8 * MIB, 2): 0.85, (MIB, 4): 0.65, (8 * MIB, 4): 0.65}
BROADCASTS = {2: 1.05, 4: 0.85}
SHARED = {2: 0.8, 4: 0.5}
EXCHANGES = {4: 0.8}


def rows(nodes: tuple[int, ...]) -> list[Row]:
    return [row for n in nodes for row in [*sums(n), *broadcasts(n), *exchanges(n)]]


def goal(ratio: float | None) -> Goal | None:
    return None if ratio is None else Goal(ratio)


def sums(n: int) -> list[Row]:
    found = []
    for size in (MIB, 8 * MIB):
        title, wanted = f"sum of {label(size)}, {n} nodes", goal(SUMS.get((size, n)))
        found += both(f"sum-{label(size, '')}", title, "array_sum", n, {"size": size}, wanted)
    return found


def broadcasts(n: int) -> list[Row]:
    found = []
    for size in (MIB, 8 * MIB):
        for copy, ratios in ((True, BROADCASTS), (False, SHARED)):
            title = f"{label(size)} to all{'' if copy else ', copy=False'}, {n} nodes"
            key = f"bcast-{label(size, '')}{'' if copy else '-shared'}"
            found += both(key, title, "broadcast", n, {"size": size, "copy": copy}, goal(ratios.get(n)))
    return found


def exchanges(n: int) -> list[Row]:
    size = 64 * KIB
    title, wanted = f"{label(size)} from each to each, {n} nodes", goal(EXCHANGES.get(n))
    return both(f"alltoall-{label(size, '')}", title, "all_to_all", n, {"size": size}, wanted)
