# SPDX-License-Identifier: MIT
"""`Comm` in a traced run: the same, and each call is recorded with its line. Nobody else imports this."""

from spcomm._core.collectives import FuzzyBarrier
from spcomm._core.comm import Comm
from spcomm._core.recorded import Recorded

# What takes no time, or only says something.
_SILENT = (
    "box",
    "fuzzy_barrier",
    "group_id",
    "handler",
    "layout",
    "local_rank",
    "members",
    "rank",
    "region",
    "rng",
)
_SILENT += ("size", "time")


class TracedComm(Comm):
    """A `Comm` whose calls lie between a CALL and a RETURN in its node's trace (csrc/segment/spc_trace.h)."""

    def fuzzy_barrier(self):
        """As `Comm.fuzzy_barrier`."""
        return TracedFuzzyBarrier(self, _enter(self))


class TracedFuzzyBarrier:
    """A fuzzy barrier whose waiting is recorded."""

    __slots__ = ("_barrier", "_comm")

    def __init__(self, comm: Comm, barrier: FuzzyBarrier) -> None:
        self._comm = comm
        self._barrier = barrier

    def done(self) -> bool:
        """As `FuzzyBarrier.done`."""
        return self._barrier.done()

    def wait(self, timeout: "float | None" = None) -> None:
        """As `FuzzyBarrier.wait`."""
        _wait(self._comm, self._barrier, timeout)

    def __enter__(self) -> "TracedFuzzyBarrier":
        self._barrier.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        _exit(self._comm, self._barrier, *error)


_enter = Recorded(Comm.fuzzy_barrier, "fuzzy_barrier")
_wait = Recorded(lambda _comm, barrier, timeout: barrier.wait(timeout), "fuzzy_barrier.wait")
_exit = Recorded(lambda _comm, barrier, *error: barrier.__exit__(*error), "fuzzy_barrier.wait")
for _name in (name for name in dir(Comm) if not name.startswith("_") and name not in _SILENT):
    setattr(TracedComm, _name, Recorded(getattr(Comm, _name), _name))
