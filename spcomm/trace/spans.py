# SPDX-License-Identifier: MIT
"""Sets of moments, as sorted lists of disjoint (begin, end)."""

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter


def union(pairs: "Iterable[tuple[float, float]]") -> "list[tuple[float, float]]":
    """Every moment that one of the pairs covers. Pairs without length cover none."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(pairs):
        if end <= begin:
            continue
        if found and begin <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def without(
    spans: "list[tuple[float, float]]", holes: "list[tuple[float, float]]"
) -> "list[tuple[float, float]]":
    """The moments of `spans` that are not in `holes`; both as `union` gives them."""
    found = []
    at = 0
    for begin, end in spans:
        while at < len(holes) and holes[at][1] <= begin:
            at += 1
        place = at
        while place < len(holes) and holes[place][0] < end:
            if holes[place][0] > begin:
                found.append((begin, holes[place][0]))
            begin = max(begin, holes[place][1])
            place += 1
        if begin < end:
            found.append((begin, end))
    return found


def within(spans: "list[tuple[float, float]]", begin: float, end: float) -> "list[tuple[float, float]]":
    """The moments of `spans` between these two; as `union` gives them."""
    found = []
    for at in range(bisect_right(spans, begin, key=itemgetter(1)), len(spans)):
        first, last = spans[at]
        if first >= end:
            break
        found.append((max(first, begin), min(last, end)))
    return found


def innermost(
    inside: "Iterable[tuple[float, float]]", outside: "Iterable[tuple[float, float]]"
) -> "list[tuple[float, float]]":
    """Every moment whose innermost pair is one of `inside`; all pairs lie within each other, or apart."""
    pairs = [(begin, -end, False) for begin, end in inside] + [(begin, -end, True) for begin, end in outside]
    found: list[tuple[float, float]] = []
    around: list[tuple[float, bool]] = []  # ends of those that go on, outer ones first
    at = 0.0
    for begin, minus_end, is_outside in (*sorted(pairs), (float("inf"), 0.0, True)):
        while around and around[-1][0] <= begin:
            end, was_outside = around.pop()
            if not was_outside:
                found.append((at, end))
            at = max(at, end)
        if around and not around[-1][1]:
            found.append((at, begin))
        at = begin
        around.append((-minus_end, is_outside))
    return union(found)


def length(spans: "Iterable[tuple[float, float]]") -> float:
    """The length of all spans together."""
    return sum(end - begin for begin, end in spans)


def steps(many: "Iterable[list[tuple[float, float]]]") -> "list[tuple[float, int]]":
    """The number of sets that a moment is in: (from when on, how many), beginning with the first change."""
    changes: dict[float, int] = {}
    for spans in many:
        for begin, end in spans:
            changes[begin] = changes.get(begin, 0) + 1
            changes[end] = changes.get(end, 0) - 1
    found: list[tuple[float, int]] = []
    count = 0
    for moment in sorted(changes):
        if changes[moment]:
            count += changes[moment]
            found.append((moment, count))
    return found
