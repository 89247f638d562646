# SPDX-License-Identifier: MIT
"""Boxes on other machines: the launcher's questions to them, and their answers.

The launcher reads the memory of a box on this machine itself. It asks a box elsewhere for the waits and activity of
its nodes (`look`; `now`, the same, but however much of its output is still unread), for their lines (`lines`), and
in a traced run for the time on its clock (`clock`).
At its end the box reports unasked what its nodes have left.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from spcomm.launch.base import nothing
from spcomm.launch.base.process import state_of
from spcomm.launch.remote.clocks import Clock

if TYPE_CHECKING:
    from typing import Any

    from spcomm._core.diagnose import Wait
    from spcomm.launch.local.stack_probe import ProbeReplies
    from spcomm.trace.remote_traces import RemoteTraces

IN_CALL = "W"  # none of the kernel's letters


def activity(segment: "Any", rank: int, process: int) -> str:
    """Return the letter of `process.state_of`; of a node that sleeps in a call that waits, `IN_CALL`."""
    found = state_of(process)
    return IN_CALL if found == "S" and segment.sleeps(rank) else found


# ---- in the box


def look(groups: "list[tuple[int, Any, list[int]]]") -> dict:
    """Return the activity of its nodes. `groups`: the number, the segment and the nodes here of each."""
    return {
        "groups": [[number, _look(segment, ranks)] for number, segment, ranks in groups],
        "now_ns": time.monotonic_ns(),
    }


def _look(segment: "Any", ranks: "list[int]") -> dict:
    """Return state and number of vain polls of each node; its wait, as far as reports need it."""
    from spcomm._core import diagnose

    nodes = []
    waiting = {}
    for rank in ranks:
        process = segment.process(rank)
        nodes.append([rank, process, segment.vain(rank), activity(segment, rank, process) if process else ""])
        wait = segment.wait(rank)
        if wait is not None:
            waiting[rank] = wait._replace(needs=())
    return {
        "nodes": nodes,
        "waits": diagnose.packed(waiting),
        "traffic": segment.traffic(),
    }


def lines(answers: "ProbeReplies", poke: "Callable[[int, int], None]", processes: "dict[int, int]") -> dict:
    """Return the lines at which these nodes, known by index, are."""
    running = [index for index, process in processes.items() if state_of(process) not in ("T", "Z")]
    return {"lines": list(answers.ask(poke, running, processes).items())}


def clock() -> dict:
    """Return the time on the box's clock."""
    return {"clock_ns": time.monotonic_ns()}


# ---- in the launcher


class RemoteBox:
    """A box elsewhere: the questions to it, and its answers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.segments: dict[int, RemoteSegment] = {}  # by group
        self.silence = ""  # why the activity of its nodes is unknown
        self.lines: dict[int, str] = {}
        self.asked = 0  # the number of the last question
        self.answered = 0
        self.told: Callable[[], None] = nothing  # called when it has answered
        self._clock_ns: int | None = None  # our clock minus theirs, for waits
        self.clock = Clock()  # the same more exactly, for traces
        self._clock_asked_ns = 0  # 0: not asked

    def ask_clock(self) -> bool:
        """Whether to ask again: the last question was answered."""
        if self._clock_asked_ns:
            return False
        self._clock_asked_ns = time.monotonic_ns()
        return True

    def answer(self, number: int, about: dict) -> None:
        """Store an answer of the box."""
        if "clock_ns" in about:
            if self._clock_asked_ns and isinstance(about["clock_ns"], int):
                self.clock.add(self._clock_asked_ns, time.monotonic_ns(), about["clock_ns"])
            self._clock_asked_ns = 0
            return
        self.answered = number
        self.silence = f"box {self.name}: its output is not read" if "held" in about else ""
        try:
            if self._clock_ns is None and "now_ns" in about:  # once: a wait is recognized by its start time
                self._clock_ns = time.monotonic_ns() - about["now_ns"]
            for group, seen in about.get("groups", ()):
                self.segments[group].seen(seen, self._clock_ns)
            self.lines = dict(about.get("lines", ()))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            self.silence = f"box {self.name}: it sent malformed answers"
        self.told()

    def noted(self, groups: list) -> None:
        """Store the box's final report. Raises `ValueError` for a malformed one."""
        for group, known in groups:
            if not isinstance(known, dict) or group not in self.segments:
                raise ValueError(f"noted: {group}")
            self.segments[group].known = known

    def give_up(self) -> None:
        """Note that the box has not answered."""
        self.silence = f"box {self.name} does not answer"


class RemoteSegment:
    """Replaces the shared memory of a group in a box elsewhere: holds the box's reports. Marks are made there."""

    fd = -1

    def __init__(self, size: int, box: RemoteBox, recorded: int = 0) -> None:
        """`recorded`: the number of events that each node keeps, if the run is traced."""
        self._size = size
        self._box = box
        self._recorded = recorded
        self.known: dict = {}  # the box's final report
        self._nodes: dict[int, tuple[int, int, str]] = {}  # process, vain polls, state
        self._waits: dict[int, Wait] = {}
        self._traffic = 0
        self.traces: RemoteTraces | None = None

    @property
    def silence(self) -> str:
        """Why the activity of its nodes is unknown; empty: it is known."""
        return self._box.silence

    @property
    def clock(self) -> Clock:
        return self._box.clock

    def add_trace(
        self, rank: object = None, lost: object = None, piece: object = None, *_more: object
    ) -> None:
        """Store a piece of a node's recorded trace; return whether it is one."""
        if not self._recorded:
            return
        if self.traces is None:
            from spcomm.trace.remote_traces import RemoteTraces

            self.traces = RemoteTraces(self._size, self._recorded)
        self.traces.add(rank, lost, piece)

    def trace_trouble(self, ranks: "list[int]") -> str:
        """Return why the trace of these nodes, all nodes there, is unusable; empty: it is usable."""
        where = f"(host {self._box.name})"
        if self.traces is None or self.traces.missing(ranks) or not self.known:
            wrong = "did not send all of its trace before its connection ended"
        elif not self.clock.is_known:
            wrong = "did not send its clock"
        else:
            wrong = ""
        if self.traces is not None:
            wrong = self.traces.wrong or wrong
            if wrong:
                self.traces.forget(wrong)
        return f"{where} {wrong}" if wrong else ""

    def seen(self, about: dict, clock_ns: int) -> None:
        """Store the activity of its nodes. `clock_ns`: our clock minus the box's."""
        from spcomm._core import diagnose

        self._nodes = {rank: (process, vain, state) for rank, process, vain, state in about["nodes"]}
        self._traffic = about["traffic"]
        self._waits = {
            rank: wait._replace(since_ns=wait.since_ns + clock_ns)
            for rank, wait in diagnose.unpacked(about["waits"]).items()
        }

    def close(self) -> None:
        pass

    def mark_finished(self, rank: int) -> None:
        pass

    def mark_died(self, rank: int, code: int) -> None:
        pass

    def mark_failing(self, rank: int, code: int) -> None:
        pass

    def mark_disconnected(self, culprit: int) -> None:
        """Do nothing: its gateway notices by itself."""

    def process(self, rank: int) -> int:
        """Return its number there."""
        return self._nodes.get(rank, (0, 0, ""))[0]

    def state(self, rank: int) -> str:
        """Return the state as `activity` does."""
        return self._nodes.get(rank, (0, 0, ""))[2]

    def look(self, in_vain: bool = False) -> "list[int]":
        """Do nothing: deadlocks are proven where the memory is."""
        return []

    def wait(self, rank: int) -> "Wait | None":
        return None if self.silence else self._waits.get(rank)

    def vain(self, rank: int) -> int:
        return self._nodes.get(rank, (0, 0, ""))[1]

    def traffic(self) -> int:
        return self._traffic

    def has_left(self) -> bool:
        return bool(self.known.get("has_left"))

    def left(self) -> list:
        """Return the messages that its nodes have left, as `unmatched.packed` gives them."""
        return self.known.get("left") or [[], 0, [], []]

    def counts(self, _ranks: "list[int] | None" = None) -> "list[dict[str, int]]":
        names = ("sent", "received", "sent_bytes", "received_bytes", "collectives")
        return self.known.get("counts") or [dict.fromkeys(names, 0) for _rank in range(self._size)]

    def times(self, _ranks: "list[int] | None" = None) -> "list[dict[str, int] | None]":
        return self.known.get("times") or [None] * self._size
