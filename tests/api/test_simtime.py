# SPDX-License-Identifier: MIT
"""Reductions of simulation times, alone, in tuples and in arrays, against tuples of Python."""

import math
import operator
import random

import numpy as np
import pytest

import spcomm
from nodetools import pass_on, refused, tree
from spcomm import SimTime

TIMES = [0.0, -0.0, 1.0, 1.5, -2.0, math.inf, 1e308, 5e-324]
LIMITS = [0, 1, -1, 2**31 - 1, -(2**31)]


def contributions(seed, size):
    """The times of all nodes; with few different values, so that ties are common."""
    chance = random.Random(seed)
    return [SimTime(chance.choice(TIMES), *chance.choices(LIMITS, k=4)) for _ in range(size)]


def added(left, right):
    return SimTime(left.time + right.time)


def alike(one, other):
    """The same type and the same bits: repr tells -0.0 from 0.0."""
    return type(one) is type(other) and repr(one) == repr(other)


@pytest.mark.smoke
@pytest.mark.parametrize("seed", range(4))
def test_extremes_and_sums(comm, seed):
    for step in range(25):
        given = contributions(100 * seed + step, comm.size)
        mine = given[comm.rank]
        assert alike(comm.global_min(mine), min(given))  # both keep the first of equal ones
        assert alike(comm.global_max(mine), max(given))
        assert alike(comm.global_sum(mine), SimTime(tree([time.time for time in given], operator.add)))


def test_ties_are_broken_by_each_priority(comm):
    for place in range(1, 5):
        mine = SimTime(3.5, **{f"p{place}": comm.size - comm.rank})
        assert comm.global_min(mine) == SimTime(3.5, **{f"p{place}": 1})
        assert comm.global_max(mine) == SimTime(3.5, **{f"p{place}": comm.size})


def test_all_nodes_have_the_same(comm):
    least = comm.global_min(contributions(7, comm.size)[comm.rank])
    assert alike(pass_on(comm, least), least)


def test_never(comm):
    assert comm.global_min(SimTime(math.inf)) == math.inf
    mine = SimTime(5, 1) if comm.rank == comm.size - 1 else SimTime(math.inf)
    assert alike(comm.global_min(mine), SimTime(5, 1))


@pytest.mark.sizes(2, 3, 4, 8)
def test_a_sum_that_is_no_time(comm):
    """Raised on all nodes, after the operation: the run goes on."""
    mine = SimTime(math.inf if comm.rank == 0 else -math.inf)
    with refused(ValueError, "global_sum(x)", "NaN", "inf"):
        comm.global_sum(mine)
    with refused(ValueError, "global_sum(x)", "NaN"):
        comm.global_sum((1, mine))
    assert comm.global_sum(1) == comm.size


@pytest.mark.smoke
def test_int_float_and_time_in_one_exchange(comm):
    """SpeedesComm 3.4: Net_Min, Net_Max, Net_Sum."""
    for seed in range(20):
        times = contributions(seed, comm.size)
        mine = (comm.rank - 3, 0.5 * comm.rank, times[comm.rank])
        results = [comm.global_min(mine), comm.global_max(mine), comm.global_sum(mine)]
        expected = [
            (-3, 0.0, min(times)),
            (comm.size - 4, 0.5 * (comm.size - 1), max(times)),
            (sum(range(comm.size)) - 3 * comm.size, 0.5 * sum(range(comm.size)), tree(times, added)),
        ]
        if comm.size == 1:
            expected[2] = (-3, 0.0, SimTime(times[0].time))  # nothing was added, and still it is a sum
        for result, wanted in zip(results, expected, strict=True):
            assert all(map(alike, result, wanted))


@pytest.mark.parametrize("length", [1, 2, 10, 32, 33, 200])
def test_tuples_of_any_length(comm, length):
    """One of several steps too, and beside what goes another way: numbers beyond 64 bits, arrays."""
    columns = [contributions(1000 + item, comm.size) for item in range(length)]
    mine = tuple(column[comm.rank] for column in columns)
    for beside in ((), (2**70 + comm.rank,), (np.full(3, comm.rank),), (True, 1 + 2j)[:1]):
        least = comm.global_min((*mine, *beside))
        assert all(map(alike, least[:length], map(min, columns)))
        total = comm.global_sum((*beside, *mine))
        expected = [SimTime(tree([time.time for time in column], operator.add)) for column in columns]
        assert all(map(alike, total[len(beside) :], expected))


def test_a_wide_integer_on_one_node_only(comm):
    """Found out when values meet: all nodes go the long way together."""
    times = contributions(3, comm.size)
    mine = (2**70 if comm.rank == comm.size - 1 else 1, times[comm.rank], np.array([times[comm.rank]]))
    number, time, array = comm.global_max(mine)
    assert number == 2**70 and alike(time, max(times)) and alike(SimTime.from_record(array[0]), max(times))
    number, time, array = comm.global_sum(mine)
    expected = SimTime(tree([time.time for time in times], operator.add))
    assert number == 2**70 + comm.size - 1
    assert alike(time, expected) and alike(SimTime.from_record(array[0]), expected)


def test_an_element_of_an_array_stays_one(comm):
    record = np.array([SimTime(2, comm.rank)])[0]
    least = comm.global_min(record)
    assert type(least) is np.void and SimTime.from_record(least) == SimTime(2)


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (3, 4), (), (5000,), (20_000,)], ids=str)
def test_arrays_element_by_element(comm, shape):
    """Also longer ones than a node's scratch, in pieces."""
    count = math.prod(shape)
    some = [contributions(item, comm.size) for item in range(min(count, 700))]
    columns = [some[item % 700] for item in range(count)]
    array = np.array([column[comm.rank] for column in columns], SimTime.dtype).reshape(shape)
    kept = array.copy()
    for reduce, choose in [(comm.global_min, min), (comm.global_max, max)]:
        result = reduce(array)
        assert type(result) is np.ndarray and result.dtype == SimTime.dtype and result.shape == shape
        assert result.tobytes() == np.array(list(map(choose, columns)), SimTime.dtype).tobytes()
    total = comm.global_sum(array)
    sums = [tree([time.time for time in column], operator.add) for column in columns]
    assert total["time"].tobytes() == np.array(sums).tobytes()
    assert not total["priorities"].any() and total.shape == shape
    assert array.tobytes() == kept.tobytes() and total.flags.writeable


def test_arrays_in_other_layouts(comm):
    times = [SimTime(step, comm.rank) for step in range(12)]
    array = np.array(times, SimTime.dtype.newbyteorder()).reshape(3, 4)
    for given in (array, array.T, array[:, ::-2]):
        least = comm.global_min(given)
        assert least.dtype == given.dtype and least.shape == given.shape
        assert (least["time"] == given["time"]).all() and not least["priorities"].any()


def test_nan_in_an_array_is_the_latest(comm):
    array = np.array([SimTime(comm.rank, 1)] * 2)
    if comm.rank == comm.size - 1:
        array["time"][0] = math.nan
    least, greatest = comm.global_min(array), comm.global_max(array)
    assert math.isnan(greatest["time"][0]) and greatest["time"][1] == comm.size - 1
    assert least["time"][1] == 0 and (least["time"][0] == 0) == (comm.size > 1)


@pytest.mark.parametrize("value", [[SimTime(1)], {"a": SimTime(1)}, np.array([SimTime(1)], object)], ids=str)
def test_what_cannot_be_reduced(comm, value):
    with refused(TypeError, "global_min(x)", "SimTime"):
        comm.global_min(value)


MISFITS = {
    "float": (lambda comm: comm.global_min(1.0), "global_min() of a float"),
    "max": (lambda comm: comm.global_max(SimTime(1)), "global_max() of a SimTime"),
    "tuple": (lambda comm: comm.global_min((SimTime(1),)), "global_min() of a tuple of (a SimTime)"),
    "array": (lambda comm: comm.global_min(np.array([SimTime(1)])), "an array of SimTime, shape (1,)"),
    "barrier": (lambda comm: comm.barrier(), "barrier()"),
}


@pytest.mark.sizes(2, 3, 8)
@pytest.mark.parametrize("misfit", MISFITS)
def test_a_mismatch_says_that_it_is_a_simtime(comm, misfit):
    call, words = MISFITS[misfit]
    with refused(spcomm.MismatchError, "global_min() of a SimTime", words, f"node {comm.members[0]}:"):
        call(comm) if comm.rank == 0 else comm.global_min(SimTime(1))
    assert comm.global_min(SimTime(comm.rank)) == 0


@pytest.mark.sizes(2, 4)
def test_tuples_in_another_order_do_not_match(comm):
    mine = (1, SimTime(1)) if comm.rank == 0 else (SimTime(1), 1)
    with refused(spcomm.MismatchError, "a tuple of (a SimTime, an int)", "a tuple of (an int, a SimTime)"):
        comm.global_min(mine)
