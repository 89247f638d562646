# SPDX-License-Identifier: MIT
"""The virtual clock: how long a run takes if nothing but declared work takes time, computed from its trace.

Each node has a clock, 0 at first. `Comm.work(cost)` moves it on by `cost`; a call that needs other nodes ends when what
it needs of them is there, and not before. Nothing else takes time: the numbers are the same on any machine, for any
schedule that the program allows.
"""

from collections import deque
from dataclasses import dataclass

from spcomm.text import aligned
from spcomm.trace.model import Trace
from spcomm.trace.steps import Step, check, not_there, steps_of

_TIMES = "virtual times"


@dataclass(frozen=True, slots=True)
class Times:
    """Results of the virtual clock, in units of work; lists are by rank.

    A ratio is None where there is nothing to divide: no work was declared, or, for `karp_flatt`, there is one
    node.
    """

    work: "list[float]"  # declared
    finish: "list[float]"  # when the node was done
    waited: "list[float]"  # the rest of it
    makespan: float  # when the last one was
    speedup: "float | None"  # all work over the makespan
    efficiency: "float | None"  # that over the number of nodes
    karp_flatt: "float | None"  # the serial fraction that this speedup shows: (1/speedup - 1/n) / (1 - 1/n)


def replay(trace: Trace, latency: float = 0.0) -> Times:
    """Compute the virtual times of a run.

    Parameters
    ----------
    trace
        All of a run that ended well, as `reader.read` gives it.
    latency
        Units of work from the sending of a message to the moment at which it can be received.

    Returns
    -------
    Times

    Raises
    ------
    TraceError
        The trace is not that of a whole run that ended well, or a node has called from several threads.
    """
    check(trace, _TIMES)
    clocks = _Clocks(trace, latency)
    clocks.run()
    work, finish = clocks.work, clocks.now
    total, makespan = sum(work), max(finish)
    speedup = total / makespan if makespan > 0 and total > 0 else None
    nodes = trace.nodes
    serial = None if speedup is None or nodes == 1 else (1 / speedup - 1 / nodes) / (1 - 1 / nodes)
    waited = [end - own for end, own in zip(finish, work, strict=True)]
    efficiency = None if speedup is None else speedup / nodes
    return Times(work, finish, waited, makespan, speedup, efficiency, serial)


def text(trace: Trace, latency: float = 0.0) -> str:
    """The times as a table.

    Parameters
    ----------
    trace, latency
        As for `replay`.

    Returns
    -------
    str
        Lines, the last one with its end.
    """
    found = replay(trace, latency)
    rows: list[tuple[str, ...]] = [("node", "work", "waited", "done at")]
    columns = zip(found.work, found.waited, found.finish, strict=True)
    rows += [(str(rank), *map(_units, numbers)) for rank, numbers in enumerate(columns)]
    if trace.nodes > 1:
        rows.append(("all", _units(sum(found.work)), _units(sum(found.waited)), _units(found.makespan)))
    slow = f", a message takes {_units(latency)}" if latency else ""
    lines = [f"virtual times (in units of work; only comm.work takes time{slow})\n", aligned(rows)]
    if found.speedup is None:
        return "".join([*lines, "  no work was declared: comm.work(cost) declares it\n"])
    lines.append(f"  speedup {found.speedup:.3f}, efficiency {100 * (found.efficiency or 0.0):.1f} %")
    if found.karp_flatt is not None:
        lines.append(f", serial fraction {found.karp_flatt:.4f} (Karp-Flatt)")
    return "".join([*lines, "\n"])


def _units(value: float) -> str:
    """With at most three decimals, and no more than it has."""
    return f"{value:.3f}".rstrip("0").rstrip(".") if value < 1e15 else f"{value:g}"


class _Clocks:
    """Lets each node go as far as it can, again and again, until all are done."""

    def __init__(self, trace: Trace, latency: float) -> None:
        self.now = [0.0] * trace.nodes
        self.work = [0.0] * trace.nodes
        self._latency = latency
        self._steps = steps_of(trace)
        self._at = [0] * trace.nodes
        self._known: dict[object, float] = {}  # when a result that others may need was there
        self._waits: dict[object, list[int]] = {}  # the ranks that cannot go on without it

    def run(self) -> None:
        ready = deque(range(len(self.now)))
        while ready:
            rank = ready.popleft()
            steps = self._steps[rank]
            while self._at[rank] < len(steps):
                step = steps[self._at[rank]]
                missing = next((key for key in step.needs if key not in self._known), None)
                if missing is not None:
                    self._waits.setdefault(missing, []).append(rank)
                    break
                self._take(rank, step)
                self._at[rank] += 1
                if step.gives is not None:
                    self._known[step.gives] = self.now[rank]
                    ready.extend(self._waits.pop(step.gives, ()))
        for rank, steps in enumerate(self._steps):
            if self._at[rank] < len(steps):
                raise not_there(_TIMES, steps[self._at[rank]], rank)

    def _take(self, rank: int, step: "Step") -> None:
        slow = 0.0 if step.message is None else self._latency
        self.now[rank] = max([self.now[rank], *(self._known[key] + slow for key in step.needs)]) + step.cost
        self.work[rank] += step.cost
