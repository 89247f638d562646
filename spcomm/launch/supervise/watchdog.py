# SPDX-License-Identifier: MIT
"""Watchdog: detects nodes that wait for ever, wait for long, or poll in vain.

The status boards in shared memory show this (csrc/segment/spc_board.h); a look costs the nodes nothing. Nodes are known
by index here (see groups).
"""

import time
from collections.abc import Callable

from spcomm.launch.base.loop import Loop
from spcomm.launch.base.process import state_of
from spcomm.launch.cmdline.groups import Group
from spcomm.launch.local import stack_probe
from spcomm.launch.local.run_processes import RunProcesses
from spcomm.launch.supervise.inquiry import ANSWER_S, Inquiry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm._core.diagnose import Wait

_LOOK_S = 0.06  # between two looks for a deadlock; two of them make a proof
_STALL_LOOK_S = 1.0  # between two looks for a stall
_VAIN_POLLS = 1000  # in one of these: more means polling
_DUE_S = 10.0  # for finished nodes to end, and for those that have raised an error to report it
DEADLOCK_CODE = 99  # exit code
ENDED, UNSTARTED, SILENT, RUNNING = "finished", "not started", "no answer", "running"


class Watchdog:
    """Reports through `found(text, exit_code)`, once, and `warn(text)`. `places` returns where all nodes are."""

    def __init__(
        self,
        run_processes: RunProcesses,
        loop: Loop,
        stall_s: float,
        found: "Callable[[str, int], None]",
        warn: "Callable[[str], None]",
        strict: bool = False,
    ) -> None:
        self._run_processes = run_processes
        self._loop = loop
        self._stall_s = stall_s  # 0: never
        self._strict = strict  # nodes that poll in vain end the run
        self._found = found
        self._warn = warn
        self._far = Inquiry(run_processes)  # boxes whose memory this machine cannot read
        self._answers: stack_probe.ProbeReplies | None = None  # where nodes report their lines
        self._ended: dict[int, int] = {}
        self._watched: dict[int, _Watched] = {}  # by group
        self._looked_at: list[Group] = []
        self._vain: set[tuple[int, int]] = set()  # reported waits in vain: nodes and start
        self._stopped = False
        self._due_until = 0.0

    def start(
        self, answers: stack_probe.ProbeReplies, ended: "dict[int, int]", is_traced: bool = False
    ) -> None:
        """Start watching. `ended` has the nodes that have ended, and stays the caller's.

        For a traced run, compare the clocks of boxes elsewhere with ours.
        """
        self._answers, self._ended = answers, ended
        # In a group of several boxes the gateways look, and one of them calls `proven`.
        self._looked_at = [group for group in self._run_processes.groups if group.boxes == 1]
        if self._looked_at:
            self._loop.at("look", _LOOK_S, self._look)
        if self._stall_s:
            self._loop.at("stall", _STALL_LOOK_S, self._look_for_stalls)
        if is_traced:
            self._far.keep_clocks(self._loop)

    def stop(self) -> None:
        self._stopped = True
        self._loop.forget("look")
        self._loop.forget("stall")
        self._loop.forget("answers")

    # Deadlocks

    def _look(self) -> None:
        for group in self._looked_at:
            blocked = group.segments[0].look()
            if blocked:
                self._tell(group, self._waits_of(group, blocked))
                return
            vain = group.segments[0].look(in_vain=True)
            if vain:
                self._warn_of_vain(group, self._waits_of(group, vain))
        self._loop.at("look", _LOOK_S, self._look)

    def _waits_of(self, group: Group, blocked: "list[int]") -> "dict[int, Wait]":
        waits = {rank: group.segment(rank).wait(rank) for rank in blocked}
        return {rank: wait for rank, wait in waits.items() if wait is not None}

    def _warn_of_vain(self, group: Group, waits: "dict[int, Wait]") -> None:
        """Warn only: a node that still works may end, and then a wait fails, which a program may catch."""
        from spcomm._core import diagnose as core

        told = {(group.index(rank), wait.since_ns) for rank, wait in waits.items()}
        if not told <= self._vain:
            self._vain |= told
            self._warn(core.report(waits, group.size, self._of(group), in_vain=True))

    def proven(self, number: int, rows: list, in_vain: bool) -> None:
        """Handle a proof by the gateways of a group: these nodes (`diagnose.packed`) wait for ever, or in vain."""
        from spcomm._core import diagnose

        group = self._run_processes.group_numbered(number)
        known = {rank: wait for rank, wait in diagnose.unpacked(rows).items() if rank < group.size}
        if not known:
            raise ValueError("none of these nodes is in the run")
        if not self._stopped:
            (self._warn_of_vain if in_vain else self._tell)(group, known)

    def _tell(self, group: Group, known: "dict[int, Wait]") -> None:
        from spcomm._core import diagnose

        self._found(diagnose.report(known, group.size, self._of(group)), DEADLOCK_CODE)

    def _of(self, group: Group) -> str:
        return "" if len(self._run_processes.groups) == 1 else f" of group {group.number}"

    # Stalls

    def _look_for_stalls(self) -> None:
        """Ask the boxes elsewhere first; the look follows when all have answered, or are late."""
        self._far.ask(self._answered)
        if self._far.is_waiting:
            self._loop.at("answers", ANSWER_S, self._judge_stalls)
        else:
            self._judge_stalls()

    def _answered(self) -> None:
        if self._loop.waits("answers") and not self._far.is_waiting:
            self._loop.at("answers", 0.0, self._judge_stalls)

    def _judge_stalls(self) -> None:
        self._far.give_up()
        for group in self._run_processes.groups:
            watched = self._watched.setdefault(group.number, _Watched(self._stall_s))
            text = self._stalled(group, watched)
            if text and not self._stopped:
                if self._strict and watched.is_spinning:
                    self._found(text, 1)
                else:
                    self._warn(text)
        if not self._stopped:
            self._loop.at("stall", _STALL_LOOK_S, self._look_for_stalls)

    def _stalled(self, group: Group, watched: "_Watched") -> str:
        waits = self.waits(group)
        now_ns = time.monotonic_ns()
        for_long = {
            rank: wait for rank, wait in waits.items() if now_ns - wait.since_ns >= watched.threshold_s * 1e9
        }
        live = [rank for rank in range(group.size) if self._is_live(group.index(rank))]
        spinning = watched.spinners(
            group, [rank for rank in live if rank not in waits and self._is_known(group, rank)]
        )
        quiet = watched.is_quiet(group, now_ns) if spinning else False
        others = [rank for rank in live if rank not in waits]
        copies = watched.copies(group, others)
        if not live or (not for_long and not quiet):
            return ""
        watched.is_spinning = quiet and set(spinning) == set(others) and set(waits) == set(for_long)
        if watched.is_spinning:
            watched.told()
            from spcomm.diagnose import stall

            return stall.spinning(
                for_long, self._where(group, spinning), watched.quiet_s(now_ns), self._of(group)
            )
        if spinning and set(spinning) == set(others):
            return ""  # a polling node computes nothing: the next looks show whether it polls in vain
        silences = {self._far.silence(group.index(rank)) for rank in others} - {""}
        if not for_long or watched.is_known(for_long, silences):
            return ""
        watched.told()
        from spcomm.diagnose import stall

        longest_s = (now_ns - min(wait.since_ns for wait in for_long.values())) / 1e9
        where = self._where(group, others)
        where |= {rank: (copied, where[rank][1]) for rank, copied in copies.items()}
        return stall.report(for_long, where, longest_s, self._of(group), group.boxes)

    def _is_live(self, index: int) -> bool:
        if index not in self._run_processes.started or index in self._ended:
            return False
        segment, rank = self._run_processes.memory(index)
        return segment.process(rank) != 0 or bool(self._far.silence(index))

    def _is_known(self, group: Group, rank: int) -> bool:
        """Whether the activity of a node can be determined."""
        return not self._far.silence(group.index(rank))

    # Ends

    def is_failure_due(self, is_known: "Callable[[int], bool]") -> bool:
        """Whether a node may yet be to blame for the reports of others.

        It has reported to them that it is finished, and its process has not ended; or it has reported an error to them,
        which is still alive and not reported here. After some seconds, no: a program may do anything meanwhile.
        """
        now = time.monotonic()
        self._due_until = self._due_until or now + _DUE_S
        left = [
            index for index in self._run_processes.started if index not in self._ended and not is_known(index)
        ]
        return now < self._due_until and any(map(self._may_fail, left))

    def _may_fail(self, index: int) -> bool:
        """Whether one node may, as far as it is visible: the memory of other machines is out of reach."""
        from spcomm._core.segments import FINISHED

        segment, rank = self._run_processes.memory(index)
        return self._far.box(index) is None and (segment.state(rank) == FINISHED or segment.has_raised(rank))

    # Where nodes are

    def waits(self, group: Group) -> "dict[int, Wait]":
        """Return the waits of its nodes: rank -> wait."""
        found = {
            rank: group.segment(rank).wait(rank)
            for rank in range(group.size)
            if self._is_live(group.index(rank))
        }
        return {rank: wait for rank, wait in found.items() if wait is not None}

    def _where(self, group: Group, ranks: "list[int]") -> "dict[int, tuple[str, str]]":
        """Return the activity and place of nodes that do not wait: rank -> ("computes", "ring.py:12 in step")."""
        from spcomm.diagnose.stall import COMPUTES, WORKS

        known = [rank for rank in ranks if self._is_known(group, rank)]
        states = {rank: self._state(group, rank) for rank in known}
        lines = self._ask([group.index(rank) for rank in known if self._is_able(group.index(rank))])
        words = {"R": COMPUTES, "T": "is stopped (SIGSTOP)", "Z": "has ended"}
        found = {}
        for rank, state in states.items():
            call, _, line = lines.get(group.index(rank), "").rpartition("  ")
            asleep = WORKS if call == stack_probe.WORK else "sleeps, or waits for something else"
            found[rank] = (words.get(state, asleep), line)
        return {rank: found.get(rank) or (self._far.silence(group.index(rank)), "") for rank in ranks}

    def _state(self, group: Group, rank: int) -> str:
        segment = group.segment(rank)
        return segment.state(rank) if segment.fd < 0 else state_of(segment.process(rank))

    def _ask(self, indices: "list[int]") -> "dict[int, str]":
        return self._far.lines(indices, lambda: self._ask_here(indices))

    def _ask_here(self, indices: "list[int]") -> "dict[int, str]":
        if self._answers is None:
            return {}
        processes = self._run_processes.started
        here = [index for index in indices if self._far.box(index) is None]
        running = [index for index in here if state_of(processes[index]) not in ("", "T", "Z")]
        return self._answers.ask(self._run_processes.poke, running, processes)

    def _is_able(self, index: int) -> bool:
        return self._run_processes.plan(index).locatable

    def places(self) -> "dict[int, str]":
        """Describe the place of every node: index -> text."""
        from spcomm._core import diagnose

        self._far.look()
        states: dict[int, str] = {}
        waiting: dict[int, str] = {}
        for group in self._run_processes.groups:
            for ranks, *what in diagnose.rows(self.waits(group)):
                waiting.update({group.index(rank): "  ".join(filter(None, what)) for rank in ranks})
        asked = [
            index
            for index in sorted(set(self._run_processes.started) - set(self._ended) - set(waiting))
            if self._is_able(index) and not self._far.silence(index)
        ]
        answers = self._ask(asked)
        for index in range(self._run_processes.size):
            if index in self._ended:
                states[index] = ENDED
            elif index not in self._run_processes.started:
                states[index] = UNSTARTED
            elif index in waiting:
                states[index] = waiting[index]
            else:
                states[index] = answers.get(
                    index, self._far.silence(index) or (SILENT if index in asked else RUNNING)
                )
        return states


class _Watched:
    """Results of the last looks at one group."""

    def __init__(self, stall_s: float) -> None:
        self._stall_s = stall_s
        self.threshold_s = stall_s  # doubles with each warning, so that a long run has few of them
        self.is_spinning = False  # as of the last look: all that do not wait poll in vain
        self._known: set[int | str] = set()  # start times of reported waits, and silent nodes
        self._vain: dict[int, int] = {}
        self._moving: dict[int, tuple[bool, int, int] | None] = {}
        self._traffic = -1
        self._since_ns = 0  # since when nothing has moved

    def spinners(self, group: Group, ranks: "list[int]") -> "list[int]":
        """Return the nodes that have polled in vain since the last look, again and again."""
        now = {rank: group.segment(rank).vain(rank) for rank in ranks}
        found = [
            rank for rank in ranks if (now[rank] - self._vain.get(rank, now[rank])) % 2**32 >= _VAIN_POLLS
        ]
        self._vain = now
        return found

    def copies(self, group: Group, ranks: "list[int]") -> "dict[int, str]":
        """Return "receives 1.6 GB" for nodes that copy a large message: at once, or further than at the last look."""
        from spcomm.trace import table

        now = {rank: group.segment(rank).moving(rank) for rank in ranks if group.segment(rank).fd >= 0}
        before = self._moving
        self._moving = before | now  # a node that waited at one look goes on at the next
        return {
            rank: f"{'sends' if found[0] else 'receives'} {table.size(found[1])}"
            for rank, found in now.items()
            if found and (found[1] == found[2] or (before.get(rank) and found != before[rank]))
        }

    def is_quiet(self, group: Group, now_ns: int) -> bool:
        """Whether nothing was sent or completed for as long as a stall takes. Called only while some node polls."""
        traffic = sum(segment.traffic() for segment in group.segments)
        if traffic != self._traffic:
            self._traffic, self._since_ns = traffic, now_ns
        return now_ns - self._since_ns >= self.threshold_s * 1e9

    def quiet_s(self, now_ns: int) -> float:
        return (now_ns - self._since_ns) / 1e9

    def is_known(self, waits: "dict[int, Wait]", silences: "set[str]") -> bool:
        """Whether all of these have been reported already."""
        found = {wait.since_ns for wait in waits.values()} | silences
        known = found <= self._known
        self._known |= found
        return known

    def told(self) -> None:
        self.threshold_s *= 2
