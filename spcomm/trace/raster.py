# SPDX-License-Identifier: MIT
"""Raster for a picture of limited width: of each column, the state that takes most of it."""

from spcomm.trace.model import Trace, Track
from spcomm.trace.states import COLORS

STATES = (*COLORS,)


def coverage(spans: "list[tuple[float, float]]", begin: float, step: float, columns: int) -> "list[float]":
    """The part of each column that disjoint spans cover, 0 to 1; column 0 begins at `begin`, each is `step` wide."""
    changes = [0.0] * (columns + 1)  # a whole column more or fewer, from here on
    found = [0.0] * columns
    for first, last in spans:
        low, high = (min(max((moment - begin) / step, 0.0), columns) for moment in (first, last))
        left, right = min(int(low), columns - 1), min(int(high), columns - 1)
        if left == right:
            found[left] += high - low
        else:
            found[left] += left + 1 - low
            found[right] += high - right
            changes[left + 1] += 1
            changes[right] -= 1
    whole = 0.0
    for at in range(columns):
        whole += changes[at]
        found[at] += whole
    return found


def runs(trace: Trace, track: Track, columns: int) -> "dict[str, list[tuple[float, float]]]":
    """Return for each state the (begin, length) of its visible parts; nothing where the track has not begun."""
    step = trace.length / columns
    states = (track.computing(), track.transferring(), track.waiting(), track.queued())
    covers = [coverage(spans, trace.begin, step, columns) for spans in states]
    found: dict[str, list[tuple[float, float]]] = {state: [] for state in STATES}
    before = None
    for column, parts in enumerate(zip(*covers, strict=True)):
        most = max(parts)
        state = STATES[parts.index(most)] if most > 0 else None
        if state is not None and state == before:
            begin, width = found[state][-1]
            found[state][-1] = (begin, width + step)
        elif state is not None:
            found[state].append((trace.begin + column * step, step))
        before = state
    return found
