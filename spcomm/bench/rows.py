# SPDX-License-Identifier: MIT
"""Declarations of a benchmark: rows of the table, and the goal of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

PEERS = "peers"  # Goal.against: the fastest peer of the row

MEMORY, TCP = "memory", "tcp"  # Row.transport
HOT, COLD = "hot", "cold"  # Row.buffers
MPI4PY, MPI_C = "mpi4py", "c"  # Row.dialect

MICROSECONDS = ("µs", 1e6)
MILLISECONDS = ("ms", 1e3)
MEBIBYTES = ("MiB", 1 / 2**20)  # for values in bytes, not times
PER_CENT = ("%", 1e2)  # for shares, not times


@dataclass(frozen=True)
class Goal:
    """Goal of a row: at most `ratio` times the time of `against`, and at most `seconds`, or `bytes`, or `share`.

    `against` is `PEERS`, the fastest of the peers, or the key of another row, whose time with spcomm counts.
    """

    ratio: float | None
    against: str = PEERS
    seconds: float | None = None
    bytes: int | None = None
    share: float | None = None

    def __str__(self) -> str:
        limits = [] if self.ratio is None else [f"{self.ratio:g}"]
        limits += [] if self.seconds is None else [duration(self.seconds)]
        limits += [] if self.bytes is None else [f"{self.bytes / 2**20:g} MiB"]
        limits += [] if self.share is None else [f"{self.share * 100:g} %"]
        return f"≤ {', '.join(limits)}"

    def is_reached(self, value: float, ratio: float | None) -> bool | None:
        """Whether that reaches the goal; None: there is nothing to compare with."""
        if self.ratio is not None and ratio is None:
            return None
        limits = [(self.ratio, ratio), (self.seconds, value), (self.bytes, value), (self.share, value)]
        return all(limit is None or (found is not None and found <= limit) for limit, found in limits)


def duration(seconds: float) -> str:
    """Format as in a goal.

    >>> duration(0.5), duration(5e-6), duration(4e-8)
    ('500 ms', '5 µs', '40 ns')
    """
    if seconds >= 0.01:
        return f"{seconds * 1e3:g} ms"
    return f"{seconds * 1e6:.0f} µs" if seconds >= 1e-6 else f"{seconds * 1e9:.0f} ns"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    key : unique name, also in the JSON.
    title : the text that the reader sees.
    work : a function `<program>_<work>` of `programs/with_*.py`, timed inside the nodes; or "launch": a whole program;
        or "diagnose": from a deadlock to its report; or "balance": the imbalance in the trace of a balanced program;
        or "plain_c": see `spcomm.bench.plain_c`; or "cluster": see `spcomm.bench.clusters`.
    nodes : number of nodes.
    parameters : keyword arguments of that function.
    goal : the goal, if any.
    computing : processes that compute all the time, beside the nodes.
    environment : extra environment variables (for spcomm's own switches).
    peers : False for rows that only spcomm can run; or the names of the only peers that run it.
    unit : name and factor from seconds.
    program : the first word of that function: "works", "arrays" and so on; rows of one share a start.
    dialect : "": each library has a program of its own; "mpi4py" or "c": all run the same MPI program, spcomm with
        its own MPI library.
    percentile : of all single times of all rounds, shown below the table; 0: none.
    boxes : 2 or more: the nodes are dealt out to that many boxes, and peers use TCP.
    direct : the boxes are connected with each other, not through the server only.
    encrypted : the boxes reach each other as over a network.
    traced : the nodes record their calls.
    operation : name of the operation in the JSON; "": that of the work.
    size_bytes : size of one message; None: the row has none, or several.
    buffers : "hot" or "cold", where that can be chosen.
    is_sweep : the row is a point of a sweep: the table shows it with minimum, median and spread.
    """

    key: str
    title: str
    work: str
    nodes: int
    parameters: dict[str, Any] = field(default_factory=dict)
    goal: Goal | None = None
    computing: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    peers: bool | tuple[str, ...] = True
    unit: tuple[str, float] = MICROSECONDS
    program: str = "works"
    dialect: str = ""
    percentile: int = 0
    boxes: int = 1
    direct: bool = False
    encrypted: bool = False
    traced: bool = False
    operation: str = ""
    size_bytes: int | None = None
    buffers: str = ""
    is_sweep: bool = False

    @property
    def transport(self) -> str:
        """The way of messages: "memory", "tcp" (each node has a box of its own) or "mixed"."""
        if self.boxes == 1:
            return MEMORY
        return TCP if self.boxes == self.nodes else "mixed"


@dataclass(frozen=True)
class Sweep:
    """The choice of a user for a benchmark that sweeps; an empty sequence stands for the benchmark's own."""

    operations: Sequence[str] = ()
    sizes: Sequence[int] = ()
    transports: Sequence[str] = ()
    buffers: Sequence[str] = ()


def each(rows_at: Callable[[int], list[Row]]) -> Callable[[tuple[int, ...]], list[Row]]:
    """Return the rows at several node counts: those at each of them."""
    return lambda nodes: [row for n in nodes for row in rows_at(n)]
