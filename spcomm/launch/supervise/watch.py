# SPDX-License-Identifier: MIT
"""`--watch`: the activity of each node, in a table at the terminal or on a page, four times a second.

All of it is read: status boards and mailboxes in shared memory, /proc for nodes that compute. Nodes do no work for it,
and get no request for their lines: the line of a waiting node is on its board. A look that takes long, with
hundreds of nodes, is followed by a pause that is longer still. `screen` has the terminal, `watch_table` draws;
`watch_page` has the page.
"""

import time
from typing import TYPE_CHECKING

from spcomm.launch.base.process import scheduled, signal_name
from spcomm.launch.local.screen import Screen
from spcomm.launch.remote.box_proxy import IN_CALL, activity
from spcomm.text import counted, duration_text

if TYPE_CHECKING:
    from spcomm.launch.base.loop import Loop
    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.local.run_processes import RunProcesses
    from spcomm.launch.local.stdin import Stdin
    from spcomm.launch.supervise.watch_page import WatchPage
    from spcomm.launch.supervise.watch_table import Draw

_LOOK_S = 0.25
_SHARE = 19  # a look is followed by a pause of so many times its duration
_PRINTED_S = 0.05  # printed text waits this long for more
_RATE_S = 1.0  # the window of rates
_VAIN_POLLS = 1000  # between two looks: more means polling
UNSTARTED, WAITS, COMPUTES, SLEEPS, POLLS = "not started", "waits", "computes", "sleeps", "polls"
STOPPED, ENDED, UNKNOWN = "stopped", "ended", "?"
QUEUES = "waits for a core"
_PLURALS = {WAITS: "wait", COMPUTES: "compute", SLEEPS: "sleep", POLLS: "poll", QUEUES: "wait for a core"}
_WORDS = {"R": COMPUTES, "T": STOPPED, "t": STOPPED, "Z": ENDED, "S": SLEEPS, "D": SLEEPS, IN_CALL: WAITS}


class Row:
    """Activity of one node."""

    def __init__(self, index: int, name: str, state: str, since: float) -> None:
        self.index = index
        self.name = name  # its rank, and its group if there are several
        self.state = state
        self.seconds = since  # for how long so far
        self.call = ""
        self.place = ""
        self.rates = (0.0, 0.0, 0.0, 0.0)  # per second: messages sent and received, bytes sent and received


def states_text(rows: "list[Row]") -> str:
    """Return how many nodes are in each state: `1 computes, 3 wait`."""
    states = [row.state for row in rows]
    counts = {state: states.count(state) for state in sorted(set(states))}
    shown = {UNKNOWN: "unknown"}
    return ", ".join(
        f"{count} {shown.get(state, state if count == 1 else _PLURALS.get(state, state))}"
        for state, count in counts.items()
    )


class Watch:
    """Looks at the nodes repeatedly; its heirs show them."""

    page: "WatchPage | None" = None  # of --watch=browser

    def __init__(self, run_processes: "RunProcesses") -> None:
        self._run_processes = run_processes
        self._begun = time.monotonic()
        self._ended: dict[int, int] = {}
        self._states: dict[int, tuple[str, float]] = {}  # and when it was first seen
        self._scheduled: dict[int, tuple[int, int, int]] = {}  # at the last look
        self._traffic = {group.number: _Traffic(group) for group in run_processes.groups}

    @property
    def screen(self) -> "Screen | None":
        """The terminal that has a table below the output."""
        return None

    def start(self, loop: "Loop", ended: "dict[int, int]", stdin: "Stdin | None" = None) -> None:
        """Start watching. `ended` has the wait statuses of nodes that have ended, and stays the caller's."""
        self._loop, self._ended = loop, ended
        self._look()

    def stop(self) -> str:
        """Stop watching, since all nodes have ended. Returns what a terminal shows when the nodes are gone."""
        self._loop.forget("watch")
        return ""

    def clear(self) -> None:
        """Restore the terminal, as if it only had output."""

    def close(self) -> None:
        """End what shows the nodes."""
        self.clear()

    def show(self, rows: "list[Row]", seconds: float) -> None:
        """Show the nodes, that many seconds after the begin of the run."""
        raise NotImplementedError

    def _look(self) -> None:
        begun = time.monotonic()
        self.show(self.rows(begun), begun - self._begun)
        took = time.monotonic() - begun
        self._loop.at("watch", max(_LOOK_S, _SHARE * took), self._look)

    def rows(self, now: float) -> "list[Row]":
        """Return the activity of all nodes at this time, by index."""
        found = []
        for group in self._run_processes.groups:
            traffic = self._traffic[group.number]
            traffic.look(now)
            found += [self._row(group, rank, traffic, now) for rank in range(group.size)]
        return found

    def _row(self, group: "Group", rank: int, traffic: "_Traffic", now: float) -> Row:
        index = group.index(rank)
        name = self._run_processes.names.label(index).decode().strip("[] ")
        wait = None if index in self._ended else group.segment(rank).wait(rank)
        if wait is None:
            state = self._state(group, rank, traffic)
            before, since = self._states.get(index, ("", now))
            state, has_run = self._of_core(index, state)
            if before != state or (state in (SLEEPS, WAITS) and has_run):  # two sleeps are not one
                since = now
            self._states[index] = state, since
            row = Row(index, name, state, now - since)
            row.call = getattr(group.segment(rank), "silence", "") if state == UNKNOWN else ""
        else:
            from spcomm._core import diagnose

            self._states.pop(index, None)
            self._scheduled.pop(index, None)
            row = Row(index, name, WAITS, max(0.0, now - wait.since_ns / 1e9))
            [(_ranks, row.call, row.place)] = diagnose.rows({rank: wait})
        row.rates = traffic.rates[rank]
        return row

    def _of_core(self, index: int, state: str) -> "tuple[str, bool]":
        """Return the state, refined by what the kernel counts, and whether the node has run since the last look."""
        if state not in (COMPUTES, POLLS, SLEEPS, WAITS) or index not in self._run_processes.started:
            return state, False
        before = self._scheduled.get(index)
        now = self._scheduled[index] = scheduled(self._run_processes.started[index])
        if before is None or now == (0, 0, 0):
            return state, False
        ran_ns, queued_ns, turns = (new - old for new, old in zip(now, before, strict=True))
        # Its time without a core counts only once it has got one.
        if state not in (SLEEPS, WAITS) and (queued_ns > ran_ns or now == before):
            state = QUEUES
        return state, turns > 0

    def _state(self, group: "Group", rank: int, traffic: "_Traffic") -> str:
        """Return the activity of a node that has not waited for long."""
        index = group.index(rank)
        if index in self._ended:
            return _end(self._ended[index])
        if index not in self._run_processes.started:
            return UNSTARTED
        segment = group.segment(rank)
        if segment.fd < 0:  # on another host
            return UNKNOWN if segment.silence else _WORDS.get(segment.state(rank), UNKNOWN)
        state = _WORDS.get(activity(segment, rank, self._run_processes.started[index]), ENDED)
        return POLLS if state == COMPUTES and traffic.vain[rank] >= _VAIN_POLLS else state


class ScreenWatch(Watch):
    """Shows the nodes in a table at the terminal."""

    def __init__(self, run_processes: "RunProcesses", screen: Screen, draw: "Draw") -> None:
        super().__init__(run_processes)
        self._screen = screen
        self._draw = draw

    @property
    def screen(self) -> Screen:
        return self._screen

    def start(self, loop: "Loop", ended: "dict[int, int]", stdin: "Stdin | None" = None) -> None:
        assert stdin is not None  # a run at a terminal has one; a cell of a notebook has no screen
        stdin.typed = self._screen.typed
        self._screen.later = lambda: loop.at("printed", _PRINTED_S, self._screen.renew)
        super().start(loop, ended, stdin)

    def stop(self) -> str:
        super().stop()
        self._loop.forget("printed")
        self._screen.close()
        now = time.monotonic()
        return self._summarize(self.rows(now), now - self._begun)

    def clear(self) -> None:
        self._screen.close()

    def show(self, rows: "list[Row]", seconds: float) -> None:
        self._screen.draw(self._draw(rows, seconds, self._screen.size))

    def _summarize(self, rows: "list[Row]", seconds: float) -> str:
        """Return the line that stays in place of the table."""
        from spcomm.launch.supervise.stats import counts_of

        groups = self._run_processes.groups
        sent = sum(counts["sent"] for group in groups for counts in counts_of(group))
        is_known = all(segment.fd >= 0 for group in groups for segment in group.segments)
        messages = f", {counted(sent, 'message')} sent" if is_known else ""
        nodes = f"{counted(len(rows), 'node')} ({states_text(rows)})"
        return f"spcomm: {nodes} after {duration_text(seconds)}{messages}; --stats shows more\n"


class PageWatch(Watch):
    """Shows the nodes on a page in the browser."""

    def __init__(self, run_processes: "RunProcesses", page: "WatchPage") -> None:
        super().__init__(run_processes)
        self.page = page

    def stop(self) -> str:
        now = time.monotonic()
        self.page.last = self.rows(now), now - self._begun
        return super().stop()

    def close(self) -> None:
        self.page.close()

    def show(self, rows: "list[Row]", seconds: float) -> None:
        self.page.show(rows, seconds)


class _Traffic:
    """Recent traffic of the nodes of a group."""

    def __init__(self, group: "Group") -> None:
        self._group = group
        self._looks: list[tuple[float, list[dict[str, int]]]] = []  # of the last second or so
        self._vain = [0] * group.size
        self.vain = [0] * group.size  # unsuccessful polls since the last look
        self.rates = [(0.0, 0.0, 0.0, 0.0)] * group.size

    def look(self, now: float) -> None:
        from spcomm.launch.supervise.stats import counts_of

        counts = counts_of(self._group)
        self._looks.append((now, counts))
        while len(self._looks) > 2 and self._looks[1][0] <= now - _RATE_S:
            self._looks.pop(0)
        seconds = now - self._looks[0][0]
        for rank in range(self._group.size):
            vain = self._group.segment(rank).vain(rank)
            self.vain[rank], self._vain[rank] = (vain - self._vain[rank]) % 2**32, vain
            if seconds > 0:
                self.rates[rank] = _rates(self._looks[0][1][rank], counts[rank], seconds)


def _rates(
    before: "dict[str, int]", now: "dict[str, int]", seconds: float
) -> "tuple[float, float, float, float]":
    names = ("sent", "received", "sent_bytes", "received_bytes")
    sent, received, sent_bytes, received_bytes = ((now[name] - before[name]) / seconds for name in names)
    return max(0.0, sent), max(0.0, received), max(0.0, sent_bytes), max(0.0, received_bytes)


def _end(status: int) -> str:
    """Describe the end of a process by its wait status."""
    if status & 0x7F:
        return f"died ({signal_name(status & 0x7F)})"
    return f"failed ({status >> 8})" if status >> 8 else ENDED
