# SPDX-License-Identifier: MIT
"""Graphs and distributed graphs: what the calls give back, and how nodes are told of edges that others know."""

import random

from mpi4py import MPI

world = MPI.COMM_WORLD
size, rank = world.size, world.rank

# A star, with an edge of node 0 to itself.
index, edges = [0], []
for node in range(size):
    edges += list(range(size)) if node == 0 else [0]
    index.append(len(edges))
star = world.Create_graph(index, edges)
assert star.Get_dims() == (size, len(edges)) and star.Get_topo() == (index[1:], edges)
assert star.Get_neighbors(rank) == edges[index[rank] : index[rank + 1]]
copy = star.Dup()
star.Free()
assert copy.Get_neighbors(0) == list(range(size))

# A graph of fewer nodes than there are.
small = world.Create_graph([1], [0])
assert (small == MPI.COMM_NULL) == (rank > 0)

# Random edges, several between the same nodes, each known to a random node; all draw the same ones.
for seed in range(5):
    draw = random.Random(seed)
    drawn = [
        (draw.randrange(size), draw.randrange(size), draw.randrange(size), draw.randrange(9))
        for _ in range(4 * size)
    ]
    drawn.sort(key=lambda edge: edge[0])  # in the order of those who give them
    mine = [edge for edge in drawn if edge[0] == rank]
    given = [[edge[1] for edge in mine], [1] * len(mine), [edge[2] for edge in mine]]
    graph = world.Create_dist_graph(*given, [edge[3] for edge in mine])
    arriving = [edge for edge in drawn if edge[2] == rank]
    leaving = [edge for edge in drawn if edge[1] == rank]
    assert graph.Get_dist_neighbors_count() == (len(arriving), len(leaving), True)
    sources, destinations, weights = graph.Get_dist_neighbors()
    assert sources == [edge[1] for edge in arriving] and destinations == [edge[2] for edge in leaving]
    assert weights == ([edge[3] for edge in arriving], [edge[3] for edge in leaving])
    graph.Free()
    plain = world.Create_dist_graph(*given)
    assert plain.Get_dist_neighbors() == (sources, destinations, None)
    plain.Free()


def error_of(function, *arguments):
    try:
        function(*arguments)
    except MPI.Exception as error:
        return error.Get_error_class()
    raise AssertionError("no error")


assert error_of(world.Create_graph, [1], [5]) == MPI.ERR_ARG
assert error_of(world.Create_graph, [*range(size + 1), size], [0] * size) == MPI.ERR_ARG
assert error_of(world.Create_dist_graph_adjacent, [size], []) == MPI.ERR_RANK
assert error_of(world.Create_dist_graph, [0], [1], [size]) == MPI.ERR_RANK
assert error_of(copy.Get_neighbors, size) == MPI.ERR_RANK
