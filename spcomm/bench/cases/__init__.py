# SPDX-License-Identifier: MIT
"""The benchmarks: a table of them, in the order in which they are shown. The modules declare their rows."""

from collections.abc import Callable
from typing import NamedTuple

from spcomm.bench.cases import alone, arrays, boxes, mpi, paths, small, sweep
from spcomm.bench.rows import Row


class Benchmark(NamedTuple):
    """Rows that belong together."""

    rows: Callable[..., list[Row]]  # at some node counts; of a sweep, also by a user's choice
    nodes: tuple[int, ...]  # by default
    least: int = 1  # the fewest with which it makes sense
    is_named: bool = False  # it is measured when named, not among `all`


BENCHMARKS = {
    "pingpong": Benchmark(small.pingpong, (2,)),
    "ring": Benchmark(small.ring, (8,)),
    "barrier": Benchmark(small.barrier, (2, 8, 32)),
    "reduce": Benchmark(small.reduce, (2, 8, 32)),
    "launch": Benchmark(small.launch, (8, 32, 64)),
    "diagnose": Benchmark(small.diagnose, (2, 8, 32)),
    "arrays": Benchmark(arrays.arrays, (2,)),
    "collectives": Benchmark(arrays.collectives, (2, 4)),
    "net_types": Benchmark(alone.net_types, (1,)),
    "boxes": Benchmark(boxes.boxes, (2, 4, 8)),
    "stall": Benchmark(boxes.stall, (3,), least=3),
    "boxes_many": Benchmark(boxes.boxes_many, (64,), is_named=True),
    "trace": Benchmark(alone.trace, (2,), least=2),
    "notebook": Benchmark(alone.notebook, (4,)),
    "sweep": Benchmark(sweep.rows, (2, 4, 8), least=2, is_named=True),
    "paths": Benchmark(paths.rows, (2, 3, 4, 5), least=2, is_named=True),
    "mpi": Benchmark(mpi.rows, (2, 4, 8), least=2, is_named=True),
}
SUMMARIES = {
    "pingpong": "Messages there and back between two nodes: half a round trip.",
    "ring": "A small object round a ring of nodes: one hop, also beside a loop in plain C.",
    "barrier": "Barriers: nodes alone, beside a loop in plain C, and beside two processes that compute all the time.",
    "reduce": "The sum of one float over all nodes, which every node gets.",
    "launch": "Start to finish of a program that imports NumPy and meets once in a barrier.",
    "diagnose": "From the moment when the last node of a circle begins to wait until the launcher's report arrives.",
    "arrays": "Arrays between two nodes: there and back, handed over, one way, and inside a dict.",
    "collectives": "Arrays among all nodes: summed, from one to all, and from each to each.",
    "net_types": "Arrays of NET_INT and NET_DOUBLE on one node, beside int32 and float64: their sum, and reading "
    "one element.",
    "boxes": "Between two boxes, through the server, encrypted and direct: messages by size, there and back "
    "and one way; barriers.",
    "stall": "Two boxes exchange messages while a node of a third one is stopped: as fast as when it waits "
    "like others.",
    "boxes_many": "Many boxes with a node each keep the server busy for ten seconds: how the slowest fares, and "
    "the server's memory.",
    "trace": "Traces: what an event costs, and messages and sums that are traced; the imbalance that a "
    "balanced program shows.",
    "notebook": "Nodes that stay alive, as under %%spcomm: from nothing to their first results, and a call of "
    "all of them.",
    "sweep": "One operation at many sizes and node counts: `--operations`, `--sizes`, `--nodes`, "
    "`--transports`, `--buffers`.",
    "paths": "A message over one to four hops, and the calls of its two ends alone: for `spcomm model fit`.",
    "mpi": "MPI programs, the same ones on spcomm's library, on Open MPI and on MPICH; in Python (mpi4py) and in C.",
}
