# SPDX-License-Identifier: MIT
"""Grids: places, shifts and subgrids, compared with what the coordinates say."""

import itertools
import math

from mpi4py import MPI

world = MPI.COMM_WORLD


def neighbor(dims, periods, coords, direction, distance):
    moved = list(coords)
    moved[direction] += distance
    if periods[direction]:
        moved[direction] %= dims[direction]
    elif not 0 <= moved[direction] < dims[direction]:
        return MPI.PROC_NULL
    rank = 0
    for dim, coord in zip(dims, moved, strict=True):
        rank = rank * dim + coord
    return rank


def check_grid(dims, periods):
    grid = world.Create_cart(dims, periods, reorder=True)
    if world.rank >= math.prod(dims):
        assert grid == MPI.COMM_NULL
        return
    places = list(itertools.product(*map(range, dims)))
    assert grid.Get_topo() == (list(dims), list(periods), list(places[grid.rank]))
    for rank, coords in enumerate(places):
        assert grid.Get_coords(rank) == list(coords) and grid.Get_cart_rank(coords) == rank
    for direction in range(len(dims)):
        for distance in (-3, -1, 0, 1, 2, 2**31 - 1):
            expected = [
                neighbor(dims, periods, places[grid.rank], direction, way) for way in (-distance, distance)
            ]
            assert list(grid.Shift(direction, distance)) == expected, (dims, periods, direction, distance)
    for remain in itertools.product((False, True), repeat=len(dims)):
        part = grid.Sub(remain)
        kept = [d for d, keep in enumerate(remain) if keep]
        mine = places[grid.rank]
        assert part.Get_topo() == tuple([line[d] for d in kept] for line in (dims, periods, mine))
        other = [
            coords
            for coords in places
            if all(coords[d] == mine[d] for d in set(range(len(dims))) - set(kept))
        ]
        translated = part.group.Translate_ranks(range(part.size), grid.group)
        assert [places[rank] for rank in translated] == other
        part.Free()
    copy = grid.Dup()
    assert isinstance(copy, MPI.Cartcomm) and copy.Get_topo() == grid.Get_topo()
    grid.Free()
    assert copy.Get_dim() == len(dims)
    copy.Free()


def shapes():
    yield ()
    for count in (1, 2, 3):
        for dims in itertools.product(range(1, world.size + 1), repeat=count):
            if math.prod(dims) <= world.size:
                yield dims


for dims in shapes():
    for periods in {(False,) * len(dims), (True,) * len(dims), (True, False, True)[: len(dims)]}:
        check_grid(dims, periods)


def error_of(function, *arguments):
    try:
        function(*arguments)
    except MPI.Exception as error:
        return error.Get_error_class()
    raise AssertionError("no error")


assert error_of(world.Create_cart, [world.size + 1]) == MPI.ERR_ARG
assert error_of(world.Create_cart, [65536, 65536, 65536]) == MPI.ERR_ARG
assert error_of(world.Create_cart, [0]) == MPI.ERR_DIMS
assert error_of(MPI.Cartcomm.Get_dim, world) == MPI.ERR_TOPOLOGY
grid = world.Create_cart([world.size])
assert error_of(grid.Get_coords, world.size) == MPI.ERR_RANK
assert error_of(grid.Get_cart_rank, [world.size]) == MPI.ERR_ARG
assert error_of(grid.Shift, 1, 1) == MPI.ERR_DIMS
assert error_of(MPI.Graphcomm.Get_dims, grid) == MPI.ERR_TOPOLOGY
