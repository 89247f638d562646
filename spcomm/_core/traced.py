# SPDX-License-Identifier: MIT
"""`Comm` in a traced run: the same, and each call is recorded with its line. Nobody else imports this."""

from spcomm._core.collectives import FuzzyBarrier
from spcomm._core.comm import Comm, Message
from spcomm._core.coordinated import CoordinatedMessages
from spcomm._core.recorded import Recorded

# What takes no time, or only says something.
_SILENT = (
    "box",
    "coordinated_messages",
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

    _fuzzy_barriers = 0  # entered

    def fuzzy_barrier(self):
        """As `Comm.fuzzy_barrier`."""
        barrier = _enter(self)
        self._fuzzy_barriers += 1
        return TracedFuzzyBarrier(self, barrier, self._fuzzy_barriers)

    def coordinated_messages(self, timeout=None, copy=True):
        """As `Comm.coordinated_messages`."""
        return TracedMessages(self, super().coordinated_messages(timeout, copy))


class TracedMessages:
    """The messages of a cycle: each is recorded as one `coordinated_recv`."""

    __slots__ = ("_comm", "_messages")

    def __init__(self, comm: Comm, messages: CoordinatedMessages) -> None:
        self._comm = comm
        self._messages = messages

    def __iter__(self) -> "TracedMessages":
        return self

    def __next__(self) -> Message:
        message = _next(self._comm, self._messages)
        if message is None:
            raise StopIteration
        return message


class TracedFuzzyBarrier:
    """A fuzzy barrier whose waiting is recorded."""

    __slots__ = ("_barrier", "_comm", "_number", "_over")

    def __init__(self, comm: Comm, barrier: FuzzyBarrier, number: int) -> None:
        self._comm = comm
        self._barrier = barrier
        self._number = number  # of those that its communicator has entered, from 1 on
        self._over = False  # and that is in the trace

    def done(self) -> bool:
        """As `FuzzyBarrier.done`. Only the answer yes is recorded: a loop may ask often."""
        if self._barrier.done() and not self._over:
            _done(self._comm, self._number)
            self._over = True
        return self._over

    def wait(self, timeout: "float | None" = None) -> None:
        """As `FuzzyBarrier.wait`."""
        _wait(self._comm, self._number, self._barrier, timeout)

    def __enter__(self) -> "TracedFuzzyBarrier":
        self._barrier.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            _wait(self._comm, self._number, self._barrier, None)


_enter = Recorded(Comm.fuzzy_barrier, "fuzzy_barrier")
_wait = Recorded(lambda _comm, _number, barrier, timeout: barrier.wait(timeout), "fuzzy_barrier.wait", 1)
_done = Recorded(lambda _comm, _number: None, "fuzzy_barrier.done", 1)
_next = Recorded(lambda _comm, messages: next(messages, None), "coordinated_recv")
_ROOTS = {"bcast": 2, "gather": 2, "reduce": 3, "scatter": 2}  # which argument of a method is its root
for _name in (name for name in dir(Comm) if not name.startswith("_") and name not in _SILENT):
    setattr(TracedComm, _name, Recorded(getattr(Comm, _name), _name, _ROOTS.get(_name, 0), "root"))
