# SPDX-License-Identifier: MIT
"""Figures and tables of the four papers: the measurements that each needs, and what it shows of them.

The papers' own numbers are in `papers.toml`; `plot` draws both. One figure more compares MPI libraries.
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources

from spcomm.bench.cases import sweep
from spcomm.bench.cases.arrays import KIB, MIB
from spcomm.bench.measure import PLAIN_C
from spcomm.bench.results_file import Measurement
from spcomm.bench.rows import HOT, MEMORY, MPI_C, TCP, Row, Sweep
from spcomm.bench.statistics import summarise

TIME, RATE = "time", "rate"  # Panel.y: microseconds for one operation, or MB/s
BYTES, NODES = "bytes", "nodes"  # Panel.x
LARGEST = 0  # Panel.nodes: the most nodes at which sizes were swept
ONLY_PICTURE = "The paper shows its numbers in a picture only; its text gives none."
TOGETHER = (
    " In spcomm a call returns when all nodes have called it, so calls that do not match are found; in MPI the nodes "
    "go on, and short calls overlap."
)


@dataclass(frozen=True)
class Panel:
    """One set of axes.

    Attributes
    ----------
    operation : as in the sweep.
    x, y : `BYTES` or `NODES`; `TIME` or `RATE`.
    nodes : where x is bytes: their number, or `LARGEST`.
    transport : "memory" or "tcp".
    title : above the axes.
    """

    operation: str
    x: str
    y: str
    nodes: int = 2
    transport: str = MEMORY
    title: str = ""


@dataclass(frozen=True)
class Figure:
    """One figure: `name` is that of its file, `source` that of the paper's figure or table."""

    name: str
    title: str
    source: str
    panels: tuple[Panel, ...]
    note: str = ""


def latency_and_rate(transport: str) -> tuple[Panel, ...]:
    return (
        Panel("pingpong", BYTES, TIME, transport=transport, title="Latency: half a ping-pong"),
        Panel("one_way", BYTES, RATE, transport=transport, title="Bandwidth: one way"),
    )


FIGURES = (
    Figure(
        "speedescomm-5",
        "Two boxes, TCP through the server",
        "SpeedesComm, figure 5",
        latency_and_rate(TCP),
        "The paper gives one number for the bandwidth; its latencies are in the picture only.",
    ),
    Figure(
        "speedescomm-6",
        "Two nodes, shared memory",
        "SpeedesComm, figure 6",
        latency_and_rate(MEMORY),
        "The paper gives one number for the bandwidth; its latencies are in the picture only.",
    ),
    Figure(
        "speedescomm-7",
        "A reduction, by nodes",
        "SpeedesComm, figure 7",
        (
            Panel("global_sum", NODES, TIME, title="Shared memory"),
            Panel("global_sum", NODES, TIME, transport=TCP, title="TCP, a box for each node"),
        ),
        ONLY_PICTURE,
    ),
    Figure(
        "speedescomm-8",
        "A reduction in shared memory, many nodes",
        "SpeedesComm, figure 8",
        (Panel("global_sum", NODES, TIME),),
        f"{ONLY_PICTURE} It has up to 64 processors; --full goes there.",
    ),
    Figure(
        "speedescomm-9",
        "Two nodes, shared memory: the paper's Origin 2000",
        "SpeedesComm, figure 9",
        latency_and_rate(MEMORY),
        ONLY_PICTURE,
    ),
    Figure("aclmpl-3", "All to all, 2 nodes", "ACLMPL, figure 3", (Panel("all_to_all", BYTES, RATE),)),
    Figure(
        "aclmpl-4",
        "All to all, many nodes",
        "ACLMPL, figure 4",
        (Panel("all_to_all", BYTES, RATE, nodes=LARGEST),),
    ),
    Figure(
        "aclmpl-5",
        "All to one, many nodes",
        "ACLMPL, figure 5",
        (Panel("all_to_one", BYTES, RATE, nodes=LARGEST),),
    ),
    Figure(
        "aclmpl-6",
        "One to all, many nodes",
        "ACLMPL, figure 6",
        (Panel("one_to_all", BYTES, RATE, nodes=LARGEST),),
        "The scan of the paper has lost this figure; the case is one of its six.",
    ),
    Figure(
        "aclmpl-7",
        "Broadcast, 2 nodes",
        "ACLMPL, figure 7",
        (Panel("broadcast", BYTES, TIME),),
        ONLY_PICTURE,
    ),
    Figure(
        "aclmpl-8",
        "Broadcast, many nodes",
        "ACLMPL, figure 8",
        (Panel("broadcast", BYTES, TIME, nodes=LARGEST),),
        ONLY_PICTURE + TOGETHER,
    ),
    Figure(
        "aclmpl-9",
        "Reduce, many nodes",
        "ACLMPL, figure 9",
        (Panel("reduce", BYTES, TIME, nodes=LARGEST),),
        ONLY_PICTURE + TOGETHER,
    ),
    Figure(
        "aclmpl-latency",
        "Latency of a short message",
        "ACLMPL, table 1",
        (Panel("pingpong", BYTES, TIME),),
        "The scan has lost the numbers of tables 1 and 2; these two are in the text.",
    ),
    Figure("scampi-1", "Barrier", "ScaMPI, table 1.1", (Panel("barrier", NODES, TIME),)),
    Figure(
        "scampi-2",
        "All to all, long messages: each node's throughput",
        "ScaMPI, table 1.2",
        (Panel("all_to_all", NODES, RATE),),
        "Only the part that goes to other nodes counts, as in the paper.",
    ),
    Figure(
        "thesis-5",
        "Layers: one-way test in C, in Python, with mpi4py",
        "Latency thesis, figure 5",
        (Panel("one_way", BYTES, TIME),),
    ),
    Figure(
        "thesis-6",
        "One-way test",
        "Latency thesis, figure 6",
        (Panel("one_way", BYTES, TIME),),
        "The thesis's figure is the test itself, in pseudo-code; it has no numbers.",
    ),
    Figure("thesis-7", "Ping-pong test", "Latency thesis, figure 7", (Panel("pingpong", BYTES, TIME),)),
    Figure(
        "mpi",
        "One MPI program in C, on each library",
        "Sweeps as in the OSU benchmarks",
        (
            Panel("mpi_pingpong", BYTES, TIME, title="Latency: half a ping-pong"),
            Panel("mpi_stream", BYTES, RATE, title="Bandwidth: 64 messages in flight"),
            Panel("mpi_allreduce", BYTES, TIME, title="MPI_Allreduce of doubles"),
        ),
        "It has no numbers of a paper. All libraries run the same program, mpi.c, and wait as they do by default.",
    ),
)
LAYERS_ONLY = ("spcomm_c", "spcomm", "openmpi", "mpich", "c")  # in "Layers"
FLOORS = {"one_way": "memcpy"}  # the operation in plain C that stands for another


@dataclass(frozen=True)
class Extent:
    """Extent of the sweeps.

    Attributes
    ----------
    sizes : of messages, in bytes.
    nodes, tcp_nodes : of collectives, in one box, and with a box for each node.
    largest : the nodes at which sizes are swept, beside two.
    long_bytes : the message of an all-to-all that is swept by nodes.
    rounds, seconds, limit : as in `Plan`.
    """

    sizes: tuple[int, ...]
    nodes: tuple[int, ...]
    tcp_nodes: tuple[int, ...]
    largest: int
    long_bytes: int
    rounds: int
    seconds: float
    limit: float


DEFAULT = Extent(
    sizes=(1, 8, 64, 512, 4 * KIB, 32 * KIB, 256 * KIB),
    nodes=(2, 4, 8, 16),
    tcp_nodes=(2, 4, 8),
    largest=8,
    long_bytes=32 * KIB,
    rounds=3,
    seconds=0.03,
    limit=150.0,
)
FULL = Extent(
    sizes=tuple(1 << power for power in range(21)),
    nodes=(2, 4, 8, 16, 20, 32, 48, 64, 96),
    tcp_nodes=(2, 4, 8, 16, 20),
    largest=16,
    long_bytes=16 * KIB,
    rounds=7,
    seconds=0.25,
    limit=5400.0,
)
MOST_EXCHANGED = 256 * MIB  # bytes under way in an all-to-all of all nodes


def rows(extent: Extent) -> list[Row]:
    """Return what all figures together need, each point once."""
    pairs = ["one_way", "pingpong"]
    found = [
        *sweep.rows((2,), Sweep([*pairs, "all_to_all", "broadcast"], extent.sizes)),
        *sweep.rows(
            (extent.largest,),
            Sweep(["all_to_all", "all_to_one", "one_to_all", "broadcast", "reduce"], extent.sizes),
        ),
        *sweep.rows(extent.nodes, Sweep(["global_sum", "barrier", "all_to_all"], (extent.long_bytes,))),
        *sweep.rows((2,), Sweep(pairs, extent.sizes, [TCP])),
        *sweep.rows(extent.tcp_nodes, Sweep(["global_sum"], (), [TCP])),
        *(row for size in extent.sizes for row in in_c(size)),
        *(row for size in (*extent.sizes, 4 * MIB) for row in of_mpi(size)),
    ]
    fitting = (row for row in found if row.operation != "all_to_all" or exchanged(row) <= MOST_EXCHANGED)
    return list({row.key: row for row in fitting}.values())


def exchanged(row: Row) -> int:
    return row.nodes**2 * (row.size_bytes or 0)


def in_c(size: int) -> list[Row]:
    """Return the floors of a message of that size, and spcomm's C API."""
    kinds = (
        ("floor", "pingpong", "pingpong", 1),
        ("floor", "memcpy", "memcpy", 1),
        ("floor", "loopback", "pingpong", 2),
        ("layers", "one_way", "one_way", 1),
        ("layers", "pingpong", "pingpong", 1),
    )
    return [
        Row(
            f"{program}-{way}-{size}",
            f"{way.replace('_', ' ')} in C, {sweep.size_text(size)}",
            PLAIN_C,
            2,
            {"way": way, "size": size},
            peers=False,
            program=program,
            boxes=boxes,
            operation=operation,
            size_bytes=size,
            buffers=HOT,
            is_sweep=True,
        )
        for program, way, operation, boxes in kinds
    ]


def of_mpi(size: int) -> list[Row]:
    """Return the works of the MPI program that are swept, with messages of that size."""
    titles = {"pingpong": "ping-pong", "stream": "64 in flight", "allreduce": "allreduce"}
    return [
        Row(
            f"mpi-sweep-{work}-{size}",
            f"MPI in C, {title}, {sweep.size_text(size)}",
            work,
            2,
            {"size": size},
            program="mpi",
            dialect=MPI_C,
            operation=f"mpi_{work}",
            size_bytes=size,
            buffers=HOT,
            is_sweep=True,
        )
        for work, title in titles.items()
        if size >= sweep.DOUBLE or work != "allreduce"
    ]


# ---- what a panel shows


@dataclass(frozen=True)
class Series:
    """One line of a panel; `low` and `high` are the rounds' extremes."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def series(figure: Figure, panel: Panel, found: Sequence[Measurement]) -> list[Series]:
    """Return the lines of a panel, spcomm first."""
    chosen = [one for one in found if belongs(panel, one, found) and in_figure(figure, one)]
    lines = []
    for name in dict.fromkeys(["spcomm", *(one.contender for one in chosen)]):
        mine = sorted((one for one in chosen if one.contender == name), key=lambda one: place(panel, one))
        if mine:
            y, low, high = zip(*(span(panel, one) for one in mine), strict=True)
            lines.append(Series(name, tuple(place(panel, one) for one in mine), y, low, high))
    return lines


def in_figure(figure: Figure, one: Measurement) -> bool:
    if figure.name == "thesis-5":
        return one.contender in LAYERS_ONLY
    return figure.name != "aclmpl-latency" or one.bytes == sweep.DOUBLE


def belongs(panel: Panel, one: Measurement, found: Sequence[Measurement]) -> bool:
    floor = one.contender == "c" and one.operation == FLOORS.get(panel.operation)
    same = floor or one.operation == panel.operation
    if not same or one.transport != panel.transport or one.buffers not in (HOT, None) or one.computing:
        return False
    if panel.x == NODES:
        return one.bytes == long_bytes(panel, found)
    return one.nodes == (panel.nodes or largest(panel.operation, found))


def largest(operation: str, found: Iterable[Measurement]) -> int:
    """Return the most nodes at which more than one size of this operation was measured."""
    sizes: dict[int, set[int | None]] = {}
    for one in found:
        if one.operation == operation and one.transport == MEMORY:
            sizes.setdefault(one.nodes, set()).add(one.bytes)
    return max((nodes for nodes, several in sizes.items() if len(several) > 1), default=0)


def long_bytes(panel: Panel, found: Iterable[Measurement]) -> int | None:
    """Return the size that was measured at the most numbers of nodes."""
    nodes: dict[int | None, set[int]] = {}
    for one in found:
        if (one.operation, one.transport) == (panel.operation, panel.transport):
            nodes.setdefault(one.bytes, set()).add(one.nodes)
    return max(nodes, key=lambda size: (len(nodes[size]), size or 0), default=None)


def place(panel: Panel, one: Measurement) -> float:
    return one.nodes if panel.x == NODES else one.bytes or 0


def span(panel: Panel, one: Measurement) -> tuple[float, float, float]:
    """Return y, and its lowest and highest round; times are the median's."""
    summary = summarise(one.samples)
    assert summary is not None  # the file was checked
    if panel.y == TIME:
        return summary.median * 1e6, summary.low * 1e6, summary.high * 1e6
    messages = one.nodes - 1 if one.operation in ("all_to_all", "all_to_one", "one_to_all") else 1
    carried = (one.bytes or 0) * messages / 1e6
    return carried / summary.median, carried / summary.high, carried / summary.low


@dataclass(frozen=True)
class PaperNumbers:
    """Numbers of a paper: `x` is empty for a level."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    source: str


def paper_numbers() -> dict[tuple[str, str], list[PaperNumbers]]:
    """Return what the papers' texts give, by figure and by the panel's y."""
    text = resources.files("spcomm.bench").joinpath("papers.toml").read_text(encoding="utf-8")
    whole = tomllib.loads(text)
    found: dict[tuple[str, str], list[PaperNumbers]] = {}
    for entry in [*whole["point"], *whole["curve"]]:
        x, y = as_tuple(entry.get("x", [])), as_tuple(entry["y"])
        numbers = PaperNumbers(entry["label"], x, y, entry["source"])
        found.setdefault((entry["figure"], entry["panel"]), []).append(numbers)
    return found


def as_tuple(value: float | Sequence[float]) -> tuple[float, ...]:
    return tuple(value) if isinstance(value, Sequence) else (value,)
