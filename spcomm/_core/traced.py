# SPDX-License-Identifier: MIT
"""`Comm` in a traced run: the same, and each call is recorded with its line. Only traced runs import this."""

from spcomm._core.comm import Comm
from spcomm._core.names import Message
from spcomm._core.p2p import CoordinatedMessages
from spcomm._core.regions import Recorded, fuzzy_barrier

# Methods that take no time, or only return information.
_SILENT = (
    "box",
    "coordinated_messages",
    "group_id",
    "handler",
    "layout",
    "local_rank",
    "members",
    "rank",
    "region",
    "rng",
    "size",
    "time",
)


class TracedComm(Comm):
    """A `Comm` whose calls lie between a CALL and a RETURN in its node's trace (csrc/segment/spc_trace.h)."""

    fuzzy_barriers = 0  # entered

    def coordinated_messages(self, timeout=None, copy=True):
        """Call `Comm.coordinated_messages`."""
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


_next = Recorded(lambda _comm, messages: next(messages, None), "coordinated_recv")
_ROOTS = {"bcast": 2, "gather": 2, "reduce": 3, "scatter": 2}  # index of the argument that is a method's root
for _name in (name for name in dir(Comm) if not name.startswith("_") and name not in _SILENT):
    setattr(TracedComm, _name, Recorded(getattr(Comm, _name), _name, _ROOTS.get(_name, 0), "root"))
TracedComm.fuzzy_barrier = Recorded(fuzzy_barrier, "fuzzy_barrier")  # type: ignore[method-assign]
