# SPDX-License-Identifier: MIT
"""Collectives of neighbours against the lists of neighbours: edges to oneself, several edges, edges of grids."""

import array
import itertools
import math

from mpi4py import MPI

world = MPI.COMM_WORLD
size, rank = world.size, world.rank
NONE = -7


def label(sender, index):
    return 1000 * sender + index


def expected(topo, sources, index_at_sender):
    """The values that come from each source, if every node sends label(rank, index) to destination number index."""
    return [
        NONE if source == MPI.PROC_NULL else label(source, index_at_sender[i])
        for i, source in enumerate(sources)
    ]


def check(topo, sources, destinations, index_at_sender):
    """All ways to exchange one number with each neighbour."""
    into, out = len(sources), len(destinations)
    sent = array.array("i", [label(rank, index) for index in range(out)])
    answer = expected(topo, sources, index_at_sender)
    same = [NONE if source == MPI.PROC_NULL else label(source, 0) for source in sources]
    first = array.array("i", [label(rank, 0)])

    def fresh():
        return array.array("i", [NONE] * into)

    def every(name, *arguments):
        """Blocking, nonblocking, and twice by a persistent request."""
        getattr(topo, f"Neighbor_{name}")(*arguments)
        yield
        getattr(topo, f"Ineighbor_{name}")(*arguments).Wait()
        yield
        request = getattr(topo, f"Neighbor_{name}_init")(*arguments)
        for _ in range(2):
            request.Start()
            request.Wait()
            yield
        request.Free()

    ones, steps = [1] * into, list(range(into))
    # The reverse order, by displacements.
    backwards = list(range(into))[::-1]
    bytes_in, bytes_out = [4 * i for i in range(into)], [4 * i for i in range(out)]
    cases = [
        ("allgather", [first, MPI.INT], lambda got: [[got, 1, MPI.INT]], same),
        ("allgatherv", [first, MPI.INT], lambda got: [[got, (ones, backwards), MPI.INT]], same[::-1]),
        ("alltoall", [sent, 1, MPI.INT], lambda got: [[got, 1, MPI.INT]], answer),
        (
            "alltoallv",
            [sent, ([1] * out, list(range(out))), MPI.INT],
            lambda got: [[got, (ones, steps), MPI.INT]],
            answer,
        ),
        (
            "alltoallw",
            [sent, ([1] * out, bytes_out), [MPI.INT] * out],
            lambda got: [[got, (ones, bytes_in), [MPI.INT] * into]],
            answer,
        ),
    ]
    for name, outgoing, incoming, wanted in cases:
        got = fresh()
        for _ in every(name, outgoing, *incoming(got)):
            assert got.tolist() == wanted, (name, got.tolist(), wanted)
            for i in range(into):
                got[i] = NONE


def check_grid(dims, periods):
    topo = world.Create_cart(dims, periods)
    if topo == MPI.COMM_NULL:
        return
    neighbors = [found for d in range(len(dims)) for found in topo.Shift(d, 1)]
    # The value that a node sends down is the one that the node below gets from above.
    check(topo, neighbors, neighbors, [i ^ 1 for i in range(len(neighbors))])
    topo.Free()


for count in (1, 2, 3):
    for dims in itertools.product(range(1, size + 1), repeat=count):
        if math.prod(dims) <= size:
            for periods in ([True] * count, [False] * count, [True, False, True][:count]):
                check_grid(dims, periods)

# Each node sends k messages to node r + k, and two to itself: the first edge meets the first, and so on.
destinations = [(rank + k) % size for k in range(3) for _ in range(k)] + [rank, rank]
sources = [(rank - k) % size for k in range(3) for _ in range(k)] + [rank, rank]
seen, places = {}, {}
for node in range(size):
    for index, to in enumerate([(node + k) % size for k in range(3) for _ in range(k)] + [node, node]):
        places.setdefault((node, to), []).append(index)
index_at_sender = []
for source in sources:
    number = seen[source] = seen.get(source, -1) + 1
    index_at_sender.append(places[source, rank][number])
topo = world.Create_dist_graph_adjacent(sources, destinations)
check(topo, sources, destinations, index_at_sender)
# Longer messages, of many elements.
for length in (0, 1, 5000, 300000):
    sent = array.array("d", [rank + 0.5] * length * len(destinations))
    got = array.array("d", [0.0] * length * len(sources))
    topo.Neighbor_alltoall([sent, length, MPI.DOUBLE], [got, length, MPI.DOUBLE])
    assert got == array.array("d", [source + 0.5 for source in sources for _ in range(length)])
topo.Free()

# Nobody beside anybody.
empty = world.Create_dist_graph_adjacent([], [])
check(empty, [], [], [])
empty.Free()
