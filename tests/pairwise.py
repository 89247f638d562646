# SPDX-License-Identifier: MIT
"""Pairwise tables: `make test` runs a covering table of a test's cases in place of the product of its parameters.

The table of a function is the same in every run and on every commit. Any two values of any two parameters meet in a
case of it. Parameters that say where a test runs are spread over these cases instead, as evenly as possible. Every
function meets half of the numbers of nodes and of the ways in which nodes start (`HALVED`), each function another
half; it meets all options of its own, and all values of the parameters that the marker `spread` names. The options
that any test runs with are spread over all functions. Of equally good cases it takes those whose run other tests
need, too. `make test-all` (pytest's option --everything) runs the products.
"""

import itertools
import zlib
from collections import Counter, defaultdict

import pytest

HALVED = {"n", "nodes", "start"}
USUAL = "usual options"


def each(step, cases):
    """The cases for `parametrize`: the first of each `step` of them; the others are left to `make test-all`."""
    return [
        pytest.param(
            *(case if type(case) is tuple else (case,)), marks=pytest.mark.stress if number % step else ()
        )
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
            (spread if name in HALVED | also else own).append((name, identity(value)))
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


def is_rare(item):
    """Whether it needs a run that few others use: to start one takes longer than most tests."""
    return any(getattr(value, "is_rare", False) for value in item.callspec.params.values())


def must_occur(rows, turn):
    """The spread values that each function meets; of what is halved, a half that depends on `turn`."""
    found = defaultdict(dict)  # {name: {value: None}}, in the order of the cases
    for name, value in itertools.chain.from_iterable(rows):
        found[name][value] = None
    wanted = {(name, value) for name in found for value in found[name] if name not in HALVED | {USUAL}}
    for name in HALVED & set(found):
        everything = list(found[name])
        half = (len(everything) + 1) // 2
        wanted |= {(name, everything[(turn + 2 * step) % len(everything)]) for step in range(half)}
    return wanted


def choose(function, items):
    """The cases of a function that are in its table."""
    places = defaultdict(dict)  # {values of its own: {values that are spread: case}}
    for item in items:
        own, spread = values(item)
        places[own][spread] = item
    everywhere = [(row, spread) for row in places for spread in places[row]]
    turn = zlib.crc32(function.encode())  # functions with few cases differ in the values that meet
    missing = must_occur([spread for _, spread in everywhere], turn)
    used, chosen = Counter(), set()

    def take(candidates):
        at = (turn + len(chosen)) % len(candidates)
        row, spread = min(
            candidates[at:] + candidates[:at],
            key=lambda pair: (
                -len(missing.intersection(pair[1])), is_rare(places[pair[0]][pair[1]]), used[pair[1]],
                sum(used[value] for value in pair[1]),
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
    """The items of all tables, in their order; functions marked `whole` are whole."""
    groups = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("whole"):
            groups[function_of(item)].append(item)
    dropped = set()
    for function, cases in groups.items():
        dropped |= set(cases).difference(choose(function, cases))
    return [item for item in items if item not in dropped]
