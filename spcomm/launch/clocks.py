# SPDX-License-Identifier: MIT
"""What the clock of another machine shows when ours shows something.

Each measurement asks for the other's time: its clock was read at some moment between the question and the answer, so
that the middle of the two is wrong by half of what lies between at most (F. Cristian, Probabilistic Clock
Synchronization, Distributed Computing 3, 1989, section 3). Of many the quickest are the best. Two clocks also run at
different rates, by some 10 µs in a second: the quickest of the first and of the second half make a line.
"""

_MOST = 64
_APART_NS = 1_000_000_000  # closer ones say nothing about rates


class Clock:
    """Another machine's; all times in nanoseconds of its and of our monotonic clock."""

    def __init__(self) -> None:
        self._found: list[
            tuple[int, int, int]
        ] = []  # their time, what ours shows more, by how much that may be wrong

    def add(self, asked_ns: int, answered_ns: int, theirs_ns: int) -> None:
        """A measurement; the first two by our clock."""
        middle_ns = (asked_ns + answered_ns) // 2
        self._found.append((theirs_ns, middle_ns - theirs_ns, (answered_ns - asked_ns + 1) // 2))
        if len(self._found) > _MOST:
            pairs = zip(self._found[::2], self._found[1::2], strict=False)
            self._found = [min(pair, key=_error) for pair in pairs]

    @property
    def is_known(self) -> bool:
        return bool(self._found)

    def ours(self, theirs_ns: int) -> int:
        """What our clock shows when theirs shows this; theirs itself, if nothing was measured."""
        if not self._found:
            return theirs_ns
        (first, more, _error), (last, more_later, _error) = self._ends()
        if last - first < _APART_NS:
            return theirs_ns + more
        return theirs_ns + more + (theirs_ns - first) * (more_later - more) // (last - first)

    @property
    def error_ns(self) -> int:
        """By how much that may be wrong."""
        return max(map(_error, self._ends())) if self._found else 0

    def _ends(self) -> "tuple[tuple[int, int, int], tuple[int, int, int]]":
        """The best of the first and of the second half, or the best of all."""
        half = len(self._found) // 2
        if half and self._found[-1][0] - self._found[0][0] >= 2 * _APART_NS:
            return min(self._found[:half], key=_error), min(self._found[half:], key=_error)
        best = min(self._found, key=_error)
        return best, best


def _error(found: "tuple[int, int, int]") -> int:
    return found[2]
