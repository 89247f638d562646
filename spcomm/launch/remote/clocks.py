# SPDX-License-Identifier: MIT
"""Clock of another machine against ours: offset, drift, and the possible error.

Each measurement asks for the other's time: its clock was read at some moment between the question and the answer, so
the midpoint of the two is wrong by at most half of the interval (F. Cristian, Probabilistic Clock Synchronization,
Distributed Computing 3, 1989, section 3). Lines join the quickest measurement of each stretch of time.

At a measurement, including a slow one, the error of the lines is known: the error of the measurement plus its
distance from the line. From there the bound grows with time, as fast as the rate of the clocks may differ from the
slope of the line: by the error of slopes, and by the change of slopes from one line to the next. The smaller of two
bounds for a moment holds.
"""

from bisect import bisect_right
from itertools import pairwise

_MOST = 8192  # measurements kept: at one in a second more than two hours, before gaps grow
_APART_NS = 1_000_000_000  # closer measurements reveal nothing about rates
_STRETCH_NS = 16 * _APART_NS  # the best of each such period makes a point of the lines,
_STRETCHES = 256  # or of a longer one, to stay within this number
_RATE = 500e-6  # the most by which a kernel corrects the rate of a clock, and more than quartz is off
_WANDER = 2e-6  # unnoticed change of rates between one stretch and the next


class Clock:
    """Another machine's clock; all times in nanoseconds of its and of our monotonic clock."""

    def __init__(self) -> None:
        # (their time, our clock minus theirs, the possible error of that), sorted by time.
        self._found: list[tuple[int, int, int]] = []
        self._fitted: _Lines | None = None

    def add(self, asked_ns: int, answered_ns: int, theirs_ns: int) -> None:
        """Add a measurement; the first two times are by our clock."""
        if self._found and theirs_ns <= self._found[-1][0]:
            return  # monotonic clocks never do that, so it is invalid
        middle_ns = (asked_ns + answered_ns) // 2
        self._fitted = None
        self._found.append((theirs_ns, middle_ns - theirs_ns, (answered_ns - asked_ns + 1) // 2))
        if len(self._found) > _MOST:
            self._found = [min(self._found[at : at + 2], key=_error) for at in range(0, len(self._found), 2)]

    @property
    def is_known(self) -> bool:
        return bool(self._found)

    def ours(self, theirs_ns: int) -> int:
        """Return our clock's time at a time of theirs; theirs itself without any measurement."""
        return theirs_ns + self._lines().offset(theirs_ns) if self._found else theirs_ns

    def error_ns(self, first_ns: int, last_ns: int) -> int:
        """Return the possible error for all of their times between these two. Requires a measurement."""
        return self._lines().error(first_ns, last_ns)

    def _lines(self) -> "_Lines":
        if self._fitted is None:
            self._fitted = _Lines(self._found)
        return self._fitted


class _Lines:
    """Draw the lines through the best measurements."""

    def __init__(self, found: "list[tuple[int, int, int]]") -> None:
        self._points = points = _best(found)
        self._times = [theirs for theirs, _more, _error in points]
        self._grows = _growth(points)
        # Each measurement has its own bound and those of its neighbours, which may have been quicker.
        self._at = [theirs for theirs, _more, _error in found]
        self._bounds = [error + abs(more - self.offset(theirs)) for theirs, more, error in found]
        for order in (range(1, len(found)), range(len(found) - 2, -1, -1)):
            for at in order:
                before = at - order.step
                grown = self._bounds[before] + self._grows * abs(self._at[at] - self._at[before])
                self._bounds[at] = min(self._bounds[at], grown)

    def offset(self, theirs_ns: int) -> int:
        """Return the offset of our clock: on the line, or on that of the first or the last two points."""
        if len(self._points) == 1:
            return self._points[0][1]
        at = min(max(bisect_right(self._times, theirs_ns), 1), len(self._points) - 1)
        (begin, more, _error), (end, more_then, _error) = self._points[at - 1], self._points[at]
        return more + (theirs_ns - begin) * (more_then - more) // (end - begin)

    def error(self, first_ns: int, last_ns: int) -> int:
        """Return the largest bound of any moment between the two."""
        found = max(self._bound(first_ns), self._bound(last_ns))
        for at in range(len(self._at)):
            before = max(0, at - 1)
            begin, end = self._at[before], self._at[at]
            if first_ns <= end and begin <= last_ns:
                # Two bounds that grow towards each other meet between the measurements.
                top = (self._bounds[before] + self._bounds[at] + self._grows * (end - begin)) / 2
                found = max(found, top)
        return int(found) + 2  # lines are rounded down, and halves, too

    def _bound(self, theirs_ns: int) -> float:
        at = bisect_right(self._at, theirs_ns)
        near = [one for one in (at - 1, at) if 0 <= one < len(self._at)]
        return min(self._bounds[one] + self._grows * abs(theirs_ns - self._at[one]) for one in near)


def _best(found: "list[tuple[int, int, int]]") -> "list[tuple[int, int, int]]":
    """Return the quickest of each stretch, none close to the one before; in a short time only the quickest of all."""
    begin, length = found[0][0], found[-1][0] - found[0][0]
    if length < 2 * _APART_NS:
        return [min(found, key=_error)]
    count = min(max(2, length // _STRETCH_NS), _STRETCHES)
    quickest: dict[int, tuple[int, int, int]] = {}
    for one in found:
        stretch = min((one[0] - begin) * count // length, count - 1)
        quickest[stretch] = min(quickest.get(stretch, one), one, key=_error)
    points: list[tuple[int, int, int]] = []
    for one in quickest.values():
        if not points or one[0] - points[-1][0] >= max(_APART_NS, length // count // 2):
            points.append(one)
        elif _error(one) < _error(points[-1]):
            points[-1] = one
    return points


def _growth(points: "list[tuple[int, int, int]]") -> float:
    """Return the bound on how fast clocks diverge from the lines: nanoseconds per nanosecond."""
    if len(points) == 1:
        return _RATE  # the line is level
    slopes, errors = [], []
    for (begin, more, error), (end, more_then, error_then) in pairwise(points):
        slopes.append((more_then - more) / (end - begin))
        errors.append((error + error_then) / (end - begin))
    # A rate that changes within a line appears as two changes of slope, and the larger one is enough; the errors of two
    # slopes may hide part of each.
    changes = [abs(a - b) + 2 * max(errors) for a, b in pairwise(slopes)]
    return min(max(errors) + max(changes, default=0.0) + _WANDER, _RATE + max(map(abs, slopes)))


def _error(found: "tuple[int, int, int]") -> int:
    return found[2]
