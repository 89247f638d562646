# SPDX-License-Identifier: MIT
"""global_sum, global_min, global_max of numbers and tuples, against Python's own arithmetic along the fixed tree."""

import math
import operator
import random
import struct

import numpy as np
import pytest

from nodetools import pass_on, same, tree

SPECIAL = [0.0, -0.0, 1e308, -1e308, 5e-324, math.inf, -math.inf, 1.0, 0.1, -1e-300, 2.0**53, -(2.0**53)]


def contributions(seed, draw, size):
    """The values of all nodes: the same list on each."""
    chance = random.Random(seed)
    return [draw(chance) for _ in range(size)]


def agree(comm, value):
    """All nodes have the same bits and types."""
    mine = value
    for _ in range(comm.size):
        value = pass_on(comm, value)
        assert same(value, mine)


@pytest.mark.parametrize("bits", [3, 31, 61, 63, 64, 65, 200, 5000])
def test_integers_of_any_size(comm, bits):
    for seed in range(8):
        given = contributions(seed, lambda chance: chance.randrange(-(2**bits), 2**bits), comm.size)
        for result, expected in [
            (comm.global_sum(given[comm.rank]), sum(given)),
            (comm.global_min(given[comm.rank]), min(given)),
            (comm.global_max(given[comm.rank]), max(given)),
        ]:
            assert type(result) is int and result == expected


@pytest.mark.smoke
def test_a_big_integer_on_one_node_only(comm):
    for odd in range(comm.size):
        mine = 10**40 if comm.rank == odd else comm.rank
        expected = [10**40 if rank == odd else rank for rank in range(comm.size)]
        assert comm.global_sum(mine) == sum(expected)
        assert comm.global_max(mine) == max(expected)
        assert comm.global_min(-mine) == -max(expected)
    # Partial sums that overflow, in a total that does not.
    mine = (2**63 - 1) if comm.rank % 2 == 0 else -(2**63 - 1)
    assert comm.global_sum(mine) == (2**63 - 1 if comm.size % 2 else 0)


@pytest.mark.parametrize("seed", range(6))
def test_float_sums_follow_the_tree_to_the_last_bit(comm, seed):
    for step in range(20):
        draws = [
            lambda chance: chance.uniform(-1, 1) * 10.0 ** chance.randrange(-20, 20),
            lambda chance: chance.choice(SPECIAL),
            lambda chance: chance.random(),
        ]
        given = contributions(100 * seed + step, draws[step % 3], comm.size)
        total = comm.global_sum(given[comm.rank])
        expected = tree(given, operator.add)
        assert type(total) is float
        assert same(total, expected) or (math.isnan(total) and math.isnan(expected))
        assert comm.global_min(given[comm.rank]) == min(given)
        assert comm.global_max(given[comm.rank]) == max(given)


def test_nan_wins_everywhere(comm):
    for odd in range(comm.size):
        mine = math.nan if comm.rank == odd else float(comm.rank)
        for function in (comm.global_sum, comm.global_min, comm.global_max):
            result = function(mine)
            assert type(result) is float and math.isnan(result)
        array = np.array([1.0, mine, -1.0])
        for function in (comm.global_sum, comm.global_min, comm.global_max):
            assert np.isnan(function(array)).tolist() == [False, True, False]


def test_signed_zeros_agree(comm):
    mine = -0.0 if comm.rank % 2 else 0.0
    for function in (comm.global_sum, comm.global_min, comm.global_max):
        result = function(mine)
        assert result == 0.0
        agree(comm, result)
    assert struct.pack("d", comm.global_sum(-0.0)) == struct.pack("d", -0.0)


@pytest.mark.smoke
def test_tuples_in_one_exchange(comm):
    rank, size = comm.rank, comm.size
    result = comm.global_sum((rank, 0.5, np.full((20, 50), rank, "f4"), -1))
    assert type(result) is tuple and len(result) == 4
    assert result[0] == size * (size - 1) // 2 and result[1] == 0.5 * size and result[3] == -size
    assert same(result[2], np.full((20, 50), size * (size - 1) // 2, "f4"))
    assert comm.global_min((rank, -rank)) == (0, 1 - size)
    assert comm.global_max((float(rank), -rank, rank)) == (float(size - 1), 0, size - 1)
    assert comm.global_sum((1,)) == (size,)


def test_long_tuples(comm):
    mine = tuple(range(comm.rank, comm.rank + 200))
    expected = tuple(sum(rank + index for rank in range(comm.size)) for index in range(200))
    assert comm.global_sum(mine) == expected
    floats = tuple(value * 0.1 for value in mine)
    totals = comm.global_sum(floats)
    assert totals == tuple(
        tree([(rank + index) * 0.1 for rank in range(comm.size)], operator.add) for index in range(200)
    )


def test_tuples_of_all_kinds(comm):
    """Arrays that NumPy combines, tuples within tuples, long ints; each item as if it were alone."""
    rank, size = comm.rank, comm.size
    mine = (
        rank,
        (1j * rank, np.float32(0.5)),
        np.full(3, rank, "f2"),
        np.full(2, rank, ">i4"),
        rank + 10**30,
    )
    whole = sum(range(size))
    count, (imaginary, half), halves, foreign, large = comm.global_sum(mine)
    assert (count, imaginary, half, large) == (whole, 1j * whole, 0.5 * size, whole + size * 10**30)
    assert same(halves, np.full(3, whole, "f2")) and same(foreign, np.full(2, whole, ">i4"))
    assert same(
        comm.reduce(mine[:2], root=size - 1), (count, (imaginary, half)) if rank == size - 1 else None
    )
    zeros = np.array([-0.0 if rank % 2 else 0.0])
    for value in ((zeros,), (zeros, 10**30)):
        assert same(comm.global_max(value)[0], np.zeros(1))
    assert comm.global_sum(()) == ()


def test_numpy_numbers(comm):
    for kind in (np.int64, np.int32, np.uint8, np.float64, np.float32):
        total = comm.global_sum(kind(2))
        assert total == 2 * comm.size
        assert isinstance(total, (int, float, np.generic)) and not isinstance(total, np.ndarray)


def test_bools_count(comm):
    assert comm.global_sum(comm.rank == 0) == 1
    assert comm.global_max(comm.rank == 0) == 1
    assert comm.global_min(comm.rank == 0) == (comm.size == 1)


def test_results_do_not_depend_on_who_is_late(comm):
    """The same sum many times, entered in every order; one result, to the last bit."""
    given = contributions(
        4, lambda chance: chance.uniform(-1, 1) * 10.0 ** chance.randrange(-15, 15), comm.size
    )
    expected = tree(given, operator.add)
    for step in range(60):
        if comm.size > 1 and step % comm.size == comm.rank:
            comm.recv((comm.rank + 1) % comm.size, tag=step)
        elif comm.size > 1 and (comm.rank - 1) % comm.size == step % comm.size:
            comm.send(None, (comm.rank - 1) % comm.size, tag=step)
        assert same(comm.global_sum(given[comm.rank]), expected)
