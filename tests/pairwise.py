# SPDX-License-Identifier: MIT
"""Pairwise tables: `make test` runs a covering table of a test's cases in place of the product of its parameters.

The table of a function is the same in every run and on every commit. Any two values of any two parameters meet in a
case of it. Parameters that say where a test runs (`SPREAD`: the number of nodes, the options of the run, the way in
which nodes start; and those that the marker `spread` names) are spread over these cases instead: each of their values
occurs at least once for every function, and as evenly as possible. Only the options that any test runs with are spread
over all functions. `make test-all` (pytest's option --everything) runs the products.
"""

import itertools
import zlib
from collections import Counter, defaultdict

import pytest

SPREAD = {"n", "nodes", "start"}
USUAL = "usual options"


def each(step, cases):
    """The cases for `parametrize`: the first of each `step` of them; the others are left to `make test-all`."""
    return [
        pytest.param(case, marks=pytest.mark.stress if number % step else ())
        for number, case in enumerate(cases)
    ]


def function_of(item):
    return item.nodeid.split("[", 1)[0]


def identity(value):
    return (type(value), value) if isinstance(value, (str, bytes, int, float, type)) else id(value)


def values(item):
    """The values of a case: (of its own parameters, of those that are spread), each with its parameter's name."""
    own, spread = [], []
    also = {name for mark in item.iter_markers("spread") for name in mark.args}
    for name, value in item.callspec.params.items():
        if name in ("comm", "pool"):  # the Config of api/nodepool.py
            usual = name == "comm" and item.get_closest_marker("options") is None
            spread += [("nodes", value.nodes), (USUAL if usual else "options", value.options)]
        else:
            (spread if name in SPREAD | also else own).append((name, identity(value)))
    return tuple(own), tuple(spread)


def cover_pairs(rows):
    """As few of these rows as a greedy choice needs for each pair of values to occur that occurs in any of them."""
    wanted = {row: set(itertools.combinations(row, 2)) or {row} for row in rows}
    missing, chosen = set().union(*wanted.values()), []
    gains = {row: len(pairs) for row, pairs in wanted.items()}
    while missing:
        best = None
        for row in sorted(gains, key=gains.get, reverse=True):
            if best is not None and gains[row] <= gains[best]:
                break  # gains only shrink: no later row can be better
            gains[row] = len(wanted[row] & missing)
            if best is None or gains[row] > gains[best]:
                best = row
        chosen.append(best)
        missing -= wanted[best]
        del gains[best]
    return [row for row in rows if row in set(chosen)]


def choose(function, items):
    """The cases of a function that are in its table."""
    places = defaultdict(dict)  # {values of its own: {values that are spread: case}}
    for item in items:
        own, spread = values(item)
        places[own][spread] = item
    everywhere = [(row, spread) for row in places for spread in places[row]]
    missing = {value for _, spread in everywhere for value in spread if value[0] != USUAL}
    used, chosen = Counter(), set()
    turn = zlib.crc32(function.encode())  # functions with few cases differ in the values that meet

    def take(candidates):
        at = (turn + len(chosen)) % len(candidates)
        row, spread = min(
            candidates[at:] + candidates[:at],
            key=lambda pair: (
                -len(missing.intersection(pair[1])), used[pair[1]], sum(used[value] for value in pair[1]),
            ),
        )  # fmt: skip
        chosen.add(places[row][spread])
        used.update([spread, *spread])
        missing.difference_update(spread)

    for row in cover_pairs(list(places)):
        take([(row, spread) for spread in places[row]])
    while missing:
        take(everywhere)
    return chosen


def table(items):
    """The items of all tables, in their order; functions with fewer than three cases, or marked `whole`, are whole."""
    groups = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("whole"):
            groups[function_of(item)].append(item)
    dropped = set()
    for function, cases in groups.items():
        if len(cases) > 2:
            dropped |= set(cases).difference(choose(function, cases))
    return [item for item in items if item not in dropped]
