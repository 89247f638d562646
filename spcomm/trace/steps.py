# SPDX-License-Identifier: MIT
"""Steps of a node's virtual clock: each needs results of other steps, takes time, and gives a result.

Messages are in the trace with both ends. Collective operations are matched by their order on their communicator, which
is the same on all of its nodes, regardless of how their data travelled: a reduction sends no messages at all.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from spcomm.text import ranks_text
from spcomm.trace.errors import TraceError
from spcomm.trace.model import Call, Message, Part, Trace, Track

_OWN = "collective"  # messages of operations that are matched as a whole


@dataclass(slots=True)
class Step:
    """The clock goes on to the latest of `needs`, then by `cost`; `gives` becomes known at that time."""

    name: str
    needs: "tuple[Hashable, ...]" = ()
    cost: float = 0.0
    gives: "Hashable | None" = None
    message: "Message | None" = None  # received: its input has been under way
    moment: float = 0.0  # when it was, in the trace,
    call: "Call | None" = None  # and in which call


# The ranks that a collective operation waits for: of a communicator of so many, for one of them, given the root.
def _all(size: int, _rank: int, _root: int) -> "range":
    return range(size)


def _the_root(_size: int, _rank: int, root: int) -> "range":
    return range(root, root + 1)


def _root_for_all(size: int, rank: int, root: int) -> "range":
    return range(size if rank == root else 0)


def _lower(_size: int, rank: int, _root: int) -> "range":
    return range(rank)


_COLLECTIVE = {
    "barrier": _all,
    "global_sum": _all,
    "global_min": _all,
    "global_max": _all,
    "allreduce": _all,
    "reduce_scatter": _all,
    "allgather": _all,
    "alltoall": _all,
    "split": _all,
    "bcast": _the_root,
    "scatter": _the_root,
    "reduce": _root_for_all,
    "gather": _root_for_all,
    "scan": _lower,
    "exscan": _lower,
}
# At one moment one call ends, then messages come and go, then another one begins.
_LEAVE, _MESSAGE, _ENTER, _LEAVE_AT_ONCE = range(4)


def check(trace: Trace, times: str) -> None:
    """Raise `TraceError` unless it is a whole run that ended well, with one thread each.

    `times` is the noun of the sentence: virtual times, predicted times.
    """
    if trace.is_part or trace.min_bytes:
        raise TraceError(f"{times} are of a whole run; leave --from, --to and --min-bytes out")
    lost = [rank for rank, count in enumerate(trace.overwritten) if count]
    if lost:
        raise TraceError(
            f"no {times}: {sum(trace.overwritten)} events of {ranks_text(lost)} were overwritten; run the "
            "program with a larger --trace-events"
        )
    if trace.missing:
        raise TraceError(
            f"no {times}: the trace has nothing of {ranks_text(trace.missing)}; run the program once more"
        )
    if trace.exit_code:
        raise TraceError(
            f"no {times}: the run did not end well (exit code {trace.exit_code}); they are of a run that did"
        )
    for track in trace.tracks:
        if track.thread:
            raise TraceError(
                f"no {times}: node {track.rank} called spcomm from several threads, and its steps are those of one "
                "thread; let one of them make the calls"
            )
        for call in track.calls:
            if call.open:
                where = f" ({call.line})" if call.line else ""
                raise TraceError(
                    f"no {times}: {call.name}{where} of node {track.rank} had not returned when the trace ended; "
                    "they are of a run that ended well"
                )


def edited(times: str, what: str) -> TraceError:
    """Return the error of a trace that no run can have written."""
    return TraceError(f"no {times}: {what}; was it edited? Run the program with --trace once more")


def not_there(times: str, step: Step, rank: int) -> TraceError:
    """Return the error of a step that needs what is not there."""
    return edited(times, f"what {step.name} of node {rank} has waited for is not in the trace")


def steps_of(trace: Trace) -> "list[list[Step]]":
    """The steps of each node, in the order in which it took them; each begin and end of a call is one.

    Parameters
    ----------
    trace
        All of a run, whose nodes have one thread each.

    Returns
    -------
    list of list of Step
        By rank.

    Raises
    ------
    TraceError
        A program in C has used fuzzy barriers: its trace does not tell which of them are over.
    """
    sent: list[list[tuple[int, Message]]] = [[] for _rank in range(trace.nodes)]
    received: list[list[tuple[int, Message]]] = [[] for _rank in range(trace.nodes)]
    for number, message in enumerate(trace.messages):
        if message.context != _OWN:
            if message.sent is not None:
                sent[message.source].append((number, message))
            if message.received is not None:
                received[message.dest].append((number, message))
    return [
        _Node(trace.nodes, track, sent[track.rank], received[track.rank]).steps() for track in trace.firsts()
    ]


class _Node:
    def __init__(
        self,
        nodes: int,
        track: Track,
        sent: "list[tuple[int, Message]]",
        received: "list[tuple[int, Message]]",
    ) -> None:
        self._whole = Part(0, 0, nodes, track.rank)
        self._rank = track.rank
        self._calls = track.calls
        self._sent = sent
        self._received = received
        self._counts: dict[Hashable, int] = {}  # by communicator and kind: how many of them were over
        self._entered: set[Hashable] = set()  # those that are not over
        self._open: list[Call] = []  # that go on, outer ones first: handlers call within calls
        self._posted: dict[int, list[int]] = {}  # messages that each unfinished synchronous send has sent
        self._came = 0  # coordinated messages so far,
        self._came_before: dict[int, int] = {}  # and before the calls that go on

    def steps(self) -> "list[Step]":
        found: list[Step] = []
        for moment, _order, action, item in sorted(self._happenings(), key=lambda one: one[:2]):
            for step in list(action(item)) or [Step("")]:
                step.moment = moment
                step.call = item if isinstance(item, Call) else self._open[-1] if self._open else None
                found.append(step)
        return found

    def _happenings(self) -> "Iterator[tuple]":
        """Yield (time, order at that time, function that makes steps, its argument)."""
        for call in self._calls:
            yield call.begin, _ENTER, self._enter, call
            yield call.end, _LEAVE if call.end > call.begin else _LEAVE_AT_ONCE, self._leave, call
        for pair in self._sent:
            yield pair[1].sent, _MESSAGE, self._send, pair
        for pair in self._received:
            yield pair[1].received, _MESSAGE, self._receive, pair

    # ---- messages

    def _send(self, pair: "tuple[int, Message]") -> "Iterator[Step]":
        if self._open and id(self._open[-1]) in self._posted:
            self._posted[id(self._open[-1])].append(pair[0])
        yield Step("send", gives=("sent", pair[0]))

    def _receive(self, pair: "tuple[int, Message]") -> "Iterator[Step]":
        number, message = pair
        self._came += message.context == "coordinated"
        yield Step("a receive", (("sent", number),), gives=("received", number), message=message)

    # ---- calls

    def _enter(self, call: Call) -> "Iterator[Step]":
        name, part = _name(call), call.part or self._whole
        self._open.append(call)
        if call.cost is not None:
            yield Step("work", cost=call.cost)
        elif name == "ssend":
            self._posted[id(call)] = []
        elif name == "coordinated_recv":
            self._came_before[id(call)] = self._came
            yield from self._begin("cycle", part)
        elif call.ended == "raised":
            return
        elif name in _COLLECTIVE:
            yield from self._begin("collective", part)
        elif name == "fuzzy_barrier":
            number = self._next(("fuzzy", part.number, part.first))
            yield Step(name, gives=_key("fuzzy", part, number, part.rank))

    def _leave(self, call: Call) -> "Iterator[Step]":
        name, part = _name(call), call.part or self._whole
        self._open = [other for other in self._open if other is not call]
        if name == "ssend":
            yield from self._taken(call)
        elif name == "coordinated_recv":
            if self._came_before.pop(id(call)) == self._came and not call.ended:
                yield from self._end(name, "cycle", part, range(part.size))
        elif call.ended:
            return
        elif name in _COLLECTIVE:
            whom = _COLLECTIVE[name](part.size, part.rank, call.number)
            yield from self._end(name, "collective", part, whom)
        elif name in ("fuzzy_barrier.wait", "fuzzy_barrier.done"):
            yield Step(name, tuple(_key("fuzzy", part, call.number, rank) for rank in range(part.size)))

    def _begin(self, kind: str, part: Part) -> "Iterator[Step]":
        """Enter an operation matched by its order; once, if a timeout leaves it and another call continues it."""
        which = kind, part.number, part.first
        if which not in self._entered:
            self._entered.add(which)
            yield Step(kind, gives=_key(kind, part, self._next(which), part.rank))

    def _end(self, name: str, kind: str, part: Part, whom: range) -> "Iterator[Step]":
        which = kind, part.number, part.first
        self._entered.discard(which)
        yield Step(name, tuple(_key(kind, part, self._counts[which], rank) for rank in whom))

    def _taken(self, call: Call) -> "Iterator[Step]":
        posted = self._posted.pop(id(call))
        if not call.ended:
            yield Step("ssend", tuple(("received", number) for number in posted))

    def _next(self, which: Hashable) -> int:
        self._counts[which] = self._counts.get(which, 0) + 1
        return self._counts[which]


def _key(kind: str, part: Part, number: int, rank: int) -> Hashable:
    return kind, part.number, part.first, number, rank


def _name(call: Call) -> str:
    """Return the call's name in Python. Programs in C have a function for each type."""
    if not call.name.startswith("spcomm_"):
        return call.name
    name = call.name.removeprefix("spcomm_").removesuffix("()")
    if "fuzzy" in name:
        raise TraceError(
            f"no virtual times: {call.name} is a call of a program in C, whose trace does not tell which fuzzy "
            "barriers are over; use spcomm_barrier() there"
        )
    for known in ("global_sum", "global_min", "global_max", "coordinated_recv"):
        if name.startswith(known):
            return known
    return name
