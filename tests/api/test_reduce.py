# SPDX-License-Identifier: MIT
"""reduce, allreduce, scan, exscan and reduce_scatter: numbers, tuples, operators of programs, and what goes wrong."""

import contextlib
import operator
import os
import pickle
import signal
from functools import partial
from itertools import starmap
from unittest import mock

import numpy as np
import pytest

import spcomm
from nodetools import refused, same, tree, until_asleep, when_asleep
from spcomm._core import operators
from test_signals import handler, interrupt

ALGORITHMS = (None, "tree", "flat", "slices", "binary-swap")
WHOLE = (None, "tree", "flat")


@spcomm.op
def joined(left, right):
    """Not commutative; of texts, tuples and lists."""
    return left + right


@spcomm.op
def product(left, right):
    """Product of matrices: not commutative, and not element by element."""
    return left @ right


@spcomm.op(commutative=True, elementwise=True)
def hypotenuse(left, right):
    return np.hypot(left, right)


@spcomm.op(elementwise=True)
def added(left, right):
    return left + right


@spcomm.op(elementwise=True, element_axes=1)
def over(front, back):
    """Composition of pixels: not commutative, and the numbers of one belong together."""
    assert front.ndim == 2 and front.shape[1] == 4
    return front + (1 - front[:, 3:]) * back


@spcomm.op(elementwise=True)
def changing(left, right):
    """Changes what it is given, which is its own."""
    left += right
    right[:] = -1
    return left


@spcomm.op(elementwise=True)
def failing(left, right):
    raise ZeroDivisionError("never works")


def check_all(comm, everybody, op, function, algorithms=(None,)):
    mine = everybody[comm.rank]
    for algorithm in algorithms:
        assert same(comm.allreduce(mine, op, algorithm), tree(everybody, function)), algorithm
        for root in {0, comm.size // 2, comm.size - 1}:
            got = comm.reduce(mine, op, root, algorithm)
            assert same(got, tree(everybody, function)) if comm.rank == root else got is None
    assert same(comm.scan(mine, op), tree(everybody[: comm.rank + 1], function))
    got = comm.exscan(mine, op)
    assert same(got, tree(everybody[: comm.rank], function)) if comm.rank else got is None


NUMBERS = {
    "SUM": operator.add, "PROD": operator.mul, "MIN": min, "MAX": max, "BAND": operator.and_, "BOR": operator.or_,
    "BXOR": operator.xor, "LAND": lambda left, right: int(bool(left and right)),
    "LOR": lambda left, right: int(bool(left or right)), "LXOR": lambda left, right: int(bool(left) != bool(right)),
}  # fmt: skip


@pytest.mark.smoke
@pytest.mark.parametrize("name", NUMBERS)
def test_ints(comm, name):
    """Integers of any size, also where some fit into 64 bits and some do not."""
    for scale in (1, 2**40, 2**62, 10**40):
        everybody = [(-1) ** rank * (rank * 7 + 5) * scale for rank in range(comm.size)]
        if name[0] == "L":
            everybody = [int(rank % 3 != 1) for rank in range(comm.size)]
        check_all(comm, everybody, getattr(spcomm, name), NUMBERS[name], ALGORITHMS)
    op = getattr(spcomm, name)
    assert type(comm.allreduce(np.int16(3), op)) is int


def test_bools(comm):
    everybody = [rank % 3 != 1 for rank in range(comm.size)]
    mine = everybody[comm.rank]
    for op, function in ((spcomm.LAND, all), (spcomm.LOR, any), (spcomm.MIN, all), (spcomm.MAX, any)):
        assert comm.allreduce(mine, op) is function(everybody)
        assert comm.scan(np.bool_(mine), op) is function(everybody[: comm.rank + 1])
    assert same(comm.scan(2.5, spcomm.LAND), 1.0) and same(comm.allreduce(0.0, spcomm.LOR), 0.0)
    assert comm.allreduce(mine, spcomm.LXOR) is (sum(everybody) % 2 == 1)
    assert comm.allreduce(mine, spcomm.BOR) is any(everybody)
    assert same(comm.allreduce(mine), sum(everybody)) and same(comm.scan(True, spcomm.PROD), 1)
    assert same(comm.allreduce(np.array([mine, True])), np.array([sum(everybody), comm.size]))


def test_floats_and_complex_numbers(comm):
    chance = np.random.default_rng(comm.size)
    everybody = [float(value) for value in chance.standard_normal(comm.size) * 10.0 ** chance.integers(-9, 9)]
    for name in ("SUM", "PROD", "MIN", "MAX"):
        check_all(comm, everybody, getattr(spcomm, name), NUMBERS[name], ALGORITHMS)
    check_all(comm, [complex(x, 1 - x) for x in everybody], spcomm.SUM, operator.add)
    check_all(comm, [complex(x, 1 - x) for x in everybody], spcomm.PROD, operator.mul)
    mine = float("nan") if comm.rank == comm.size - 1 else 1.0
    assert np.isnan(comm.allreduce(mine, spcomm.MIN)) and np.isnan(
        comm.reduce(mine, spcomm.MAX) or mine * 0 + np.nan
    )
    assert np.isnan(comm.scan(mine, spcomm.MAX)) == (comm.rank == comm.size - 1)
    for place in {0, comm.size - 1}:
        zeros = [-0.0 if rank == place else 0.0 for rank in range(comm.size)]
        assert same(comm.scan(zeros[comm.rank], spcomm.MIN), -0.0 if comm.rank >= place else 0.0)
        assert same(comm.allreduce(zeros[comm.rank], spcomm.MIN), -0.0)
        for mine in (np.float32(zeros[comm.rank]), np.full(8, zeros[comm.rank])):
            for algorithm in ALGORITHMS:
                (least,) = comm.allreduce((mine,), spcomm.MIN, algorithm=algorithm)
                assert np.signbit(least).all(), (mine, algorithm)
    assert same(comm.allreduce(np.float32(0.5)), np.float32(0.5 * comm.size))
    assert same(comm.scan(np.float32(0.5), spcomm.PROD), np.float32(0.5) ** np.float32(comm.rank + 1))


def test_times_and_tuples(comm):
    time = spcomm.SimTime(comm.size - comm.rank, comm.rank)
    assert comm.allreduce(time, spcomm.MIN) == spcomm.SimTime(1, comm.size - 1)
    assert comm.scan(time, spcomm.MIN) == time and comm.scan(time, spcomm.MAX) == spcomm.SimTime(comm.size, 0)
    assert comm.scan(time) == spcomm.SimTime(sum(range(comm.size - comm.rank, comm.size + 1)))
    given = (comm.rank, 0.5, time, np.arange(3), (1, True))
    total = comm.allreduce(given[:4])
    assert (
        total[:2] == (sum(range(comm.size)), comm.size / 2) and (total[3] == np.arange(3) * comm.size).all()
    )
    count, half, last, array, inner = comm.scan(given, spcomm.MAX)
    assert (count, half, last, inner) == (comm.rank, 0.5, spcomm.SimTime(comm.size, 0), (1, True))
    assert same(array, np.arange(3))
    assert comm.allreduce((), spcomm.PROD) == ()


def test_pairs(comm):
    for values in ([5, 3, 3, 9, 3, 1, 1, 7], [0.5, -0.0, 0.0, np.nan, 2.5, np.nan, 1.0, 0.0]):
        everybody = [(value, rank * 5 % 8) for rank, value in enumerate(values[: comm.size])]
        for op, argument in ((spcomm.MINLOC, np.argmin), (spcomm.MAXLOC, np.argmax)):
            least = everybody[argument([value for value, _index in everybody])][0]
            alike = [index for value, index in everybody if value == least or value != value != least]
            value, index = comm.allreduce(everybody[comm.rank], op)
            assert index == min(alike) and (value == least or value != value)
            got = comm.reduce(everybody[comm.rank], op, comm.size - 1)
            assert got is None if comm.rank != comm.size - 1 else got[1] == min(alike)
    for bad in (3, (3,), (1, 2.0), (1j, 2), ("a", 1), [1, 2]):
        with refused(TypeError, "scan(x, op=MINLOC)", "(value, index)"):
            comm.scan(bad, spcomm.MINLOC)
    comm.barrier()


def test_operators_can_be_called(comm):
    assert (spcomm.SUM(2, 3), spcomm.PROD(2.0, 3.0), spcomm.LXOR(5, 0), spcomm.BAND(6, 3)) == (5, 6.0, 1, 2)
    assert spcomm.MAXLOC((1, 5), (1, 2)) == (1, 2)
    assert same(spcomm.MIN(np.arange(3), np.ones(3, int)), np.array([0, 1, 1]))
    assert repr(spcomm.SUM) == "spcomm.SUM" and repr(joined) == "joined" and joined.__doc__.startswith("Not")
    assert hypotenuse.commutative and spcomm.SUM.commutative and not joined.commutative
    assert pickle.loads(pickle.dumps(spcomm.BXOR)) is spcomm.BXOR
    with refused(TypeError, "SUM(left, right)", "a str"):
        spcomm.SUM("a", "b")
    with refused(TypeError, "op(3)", "function of two values"):
        spcomm.op(3)


# ---- operators of programs


@pytest.mark.smoke
def test_operators_that_do_not_commute(comm):
    check_all(comm, [f"{rank}," * (rank + 1) for rank in range(comm.size)], joined, operator.add, WHOLE)
    check_all(comm, [(rank, [rank]) for rank in range(comm.size)], joined, operator.add)
    check_all(comm, ["x" * 3000 + str(rank) for rank in range(comm.size)], joined, operator.add)
    matrices = list(np.random.default_rng(3).standard_normal((comm.size, 2, 2)))
    check_all(comm, matrices, product, operator.matmul, WHOLE)
    large = list(np.random.default_rng(3).standard_normal((comm.size, 70, 70)))
    check_all(comm, large, product, operator.matmul, WHOLE)


@pytest.mark.parametrize("length", [0, 1, 5, 3000, 6000])
def test_operators_element_by_element(comm, length):
    everybody = list(np.random.default_rng(length).standard_normal((comm.size, length, 2)))
    check_all(comm, everybody, hypotenuse, np.hypot, ALGORITHMS)
    whole = tree(everybody, np.hypot)
    mine = everybody[comm.rank]
    assert same(comm.reduce_scatter(mine, hypotenuse), np.array_split(whole, comm.size)[comm.rank])
    before = mine.copy()
    for algorithm in ALGORITHMS:
        for _ in range(2):
            assert np.allclose(comm.allreduce(mine, changing, algorithm), sum(everybody))
    assert same(mine, before)


@pytest.mark.parametrize("shape", [(0, 4), (1, 4), (3, 5, 4), (40, 70, 4), (2, 0, 4), (4,)])
def test_operators_on_pixels(comm, shape):
    """The last axis is never cut, and the ranks' order is kept."""
    chance = np.random.default_rng(len(shape))
    everybody = [chance.random(shape, np.float32) for _ in range(comm.size)]
    whole = tree(
        [each.reshape(-1 if each.size else 0, 4) for each in everybody], lambda front, back: over(front, back)
    ).reshape(shape)
    for algorithm in ALGORITHMS:
        assert same(comm.allreduce(everybody[comm.rank], over, algorithm), whole), algorithm
        got = comm.reduce(np.asfortranarray(everybody[comm.rank]), over, comm.size - 1, algorithm)
        assert same(got, whole) if comm.rank == comm.size - 1 else got is None
    assert comm.scan(everybody[comm.rank], over).shape == shape
    with refused(ValueError, "element_axes=1", "shape ()"):
        comm.allreduce(np.array(1.0), over)


PIXEL = np.dtype([("depth", "f4"), ("colour", "u1", 3)])


@spcomm.op(elementwise=True)
def nearest(one, other):
    return np.where(one["depth"] <= other["depth"], one, other)


@pytest.mark.parametrize("length", [1, 7, 20_000])
def test_operators_on_structures_and_objects(comm, length):
    chance = np.random.default_rng(length)
    everybody = [np.zeros(length, PIXEL) for _ in range(comm.size)]
    for each in everybody:
        each["depth"], each["colour"] = chance.random(length), chance.integers(0, 256, (length, 3))
    whole = tree(everybody, lambda one, other: nearest(one, other))
    texts = [np.array([f"{rank}.{i}," for i in range(min(length, 50))], object) for rank in range(comm.size)]
    for algorithm in ALGORITHMS:
        assert same(comm.allreduce(everybody[comm.rank], nearest, algorithm), whole), algorithm
        assert same(comm.allreduce(texts[comm.rank], added, algorithm), tree(texts, operator.add)), algorithm
        halves = comm.allreduce(np.full(length, 0.5, "f2"), spcomm.SUM, algorithm)  # by spcomm, but not in C
        assert same(halves, np.full(length, 0.5 * comm.size, "f2")), algorithm


def test_which_operators_are_elementwise(comm):
    assert spcomm.SUM.elementwise and hypotenuse.elementwise and not joined.elementwise
    assert over.element_axes == 1 and nearest.element_axes == 0
    largest, first = spcomm.op(np.maximum), spcomm.op(np.fmin)
    assert largest.elementwise and largest.name == "maximum" and largest.identity != first.identity
    assert not spcomm.op(np.matmul).elementwise
    mine = np.arange(9) * (comm.rank + 1)
    for algorithm in ALGORITHMS:
        assert same(comm.allreduce(mine, largest, algorithm), np.arange(9) * comm.size)
        assert comm.allreduce("x", added, algorithm) == "x" * comm.size  # nothing to be cut
    for algorithm in ("slices", "binary-swap"):
        for value in (mine, "x"):
            with refused(ValueError, f'(op=joined, algorithm="{algorithm}")', "elementwise=True", '"tree"'):
                comm.reduce(value, joined, algorithm=algorithm)
    for bad, kind in ((-1, ValueError), (1.0, TypeError)):
        with refused(kind, "op(element_axes="):
            spcomm.op(elementwise=True, element_axes=bad)
    with refused(ValueError, "op(element_axes=1)", "elementwise=True"):
        spcomm.op(element_axes=1)
    comm.barrier()


def test_items_for_each_node(comm):
    items = [f"{comm.rank}>{rank} " for rank in range(comm.size)]
    expected = "".join(f"{source}>{comm.rank} " for source in range(comm.size))
    assert comm.reduce_scatter(items, joined) == comm.reduce_scatter(iter(items), joined) == expected
    mixed = [rank if rank % 2 else np.full(rank, 1.0) for rank in range(comm.size)]
    got = comm.reduce_scatter(mixed)
    assert same(got, comm.rank * comm.size if comm.rank % 2 else np.full(comm.rank, float(comm.size)))
    for bad, kind in (
        ([1] * (comm.size + 1), ValueError),
        (3, TypeError),
        ("ab", TypeError),
        (None, TypeError),
    ):
        with refused(kind, "reduce_scatter(x"):
            comm.reduce_scatter(bad, joined)
    with refused(TypeError, "counts divides the first axis of an array"):
        comm.reduce_scatter(items, joined, counts=[1] * comm.size)
    comm.barrier()


def test_operators_that_raise(comm):
    """It comes out where the operator was applied, and all go on."""
    alone = comm.size == 1
    if not alone:
        with refused(ZeroDivisionError, "never works"):
            comm.allreduce(1, failing)
    if comm.rank == 0 and not alone:
        with refused(ZeroDivisionError, "never works"):
            comm.reduce(1, failing)
    if comm.rank != 0:
        assert comm.reduce(1, failing) is None
        with refused(ZeroDivisionError, "never works"):
            comm.scan(1, failing)
    elif not alone:
        assert comm.scan(1, failing) == 1
    for algorithm in ALGORITHMS[1:]:
        if not alone:  # on all others that need it, too
            kind = ZeroDivisionError if comm.rank == 0 else (ZeroDivisionError, spcomm.SpcommError)
            with refused(kind, "never works"):
                comm.allreduce(np.zeros(3000), failing, algorithm)
            if algorithm == "tree":
                with refused(kind, "never works"):
                    comm.reduce("x", failing, comm.size - 1, "tree")
    assert comm.allreduce(comm.rank, spcomm.MAX) == comm.size - 1


@spcomm.op(elementwise=True)
def failing_for_some(left, right):
    if left[0] == 0:
        raise ZeroDivisionError("never works for zeros")
    return left + right


@spcomm.op(elementwise=True)
def shortening(left, right):
    return left[:1]


@pytest.mark.sizes(2, 3, 5, 8)
@pytest.mark.parametrize("algorithm", ["slices", "binary-swap"])
def test_one_part_raises(comm, algorithm):
    """The node with that part raises; the others hear who it was. Half of them have it in binary swap's first round."""
    array = np.arange(4000.0)
    raises = comm.rank == 0 or (
        algorithm == "binary-swap" and comm.rank % 2 == 0 and comm.rank + 1 < comm.size
    )
    for _ in range(2):
        if raises:
            with refused(ZeroDivisionError, "for zeros"):
                comm.allreduce(array, failing_for_some, algorithm)
        else:
            call = f'allreduce(op=failing_for_some, algorithm="{algorithm}")'
            with refused(spcomm.SpcommError, call, f"node {comm.members[0]} gave nothing", "for zeros"):
                comm.allreduce(array, failing_for_some, algorithm)
    with refused((ValueError, spcomm.SpcommError), "shortening gave an array of shape (1,)"):
        comm.allreduce(array, shortening, algorithm)
    assert same(comm.allreduce(array + 1, failing_for_some, algorithm), (array + 1) * comm.size)


@spcomm.op
def interrupted(left, right):
    if left == "first":
        raise KeyboardInterrupt
    return left + right


@pytest.mark.sizes(2, 3, 5, 8)
def test_an_operator_that_is_interrupted(comm):
    """Ctrl-C in it ends the call for all: the others do not wait for what will not come."""
    mine = "x" if comm.rank else "first"
    for call in (
        lambda: comm.allreduce(mine, interrupted, "tree"),
        lambda: comm.reduce(mine, interrupted, comm.size - 1, "tree"),
    ):
        with refused(
            spcomm.SpcommError if comm.rank else KeyboardInterrupt, "KeyboardInterrupt"[: comm.rank * 99]
        ):
            call()
    assert comm.allreduce("x", interrupted, "tree") == "x" * comm.size


class Unpicklable:
    def __reduce__(self):
        raise ZeroDivisionError("no way")


@pytest.mark.sizes(2, 3, 8)
def test_what_cannot_be_pickled(comm):
    thing = Unpicklable() if comm.rank == 1 else "x"
    with refused((TypeError, spcomm.SpcommError), "no way"):
        comm.allreduce(thing, joined)
    assert comm.allreduce("x", joined) == "x" * comm.size


# ---- bad input


CALLS = ("reduce", "allreduce", "scan", "exscan", "reduce_scatter")


@pytest.mark.parametrize("name", CALLS)
def test_strings_have_no_sum(comm, name):
    call = getattr(comm, name)
    with refused(TypeError, f"{name}(x", "str", "@spcomm.op"):
        call(["a"] * comm.size if name == "reduce_scatter" else "a")
    comm.barrier()


MISMATCHES = {  # what errors call a call, and its code
    "allreduce(op=SUM) of a float": "comm.allreduce(1.0)",
    "allreduce(op=SUM) of an int": "comm.allreduce(1)",
    "allreduce(op=PROD) of an int": "comm.allreduce(1, spcomm.PROD)",
    "reduce(op=MAX, root=0) of an int": "comm.reduce(1, spcomm.MAX)",
    "reduce(op=MAX, root=1) of an int": "comm.reduce(1, spcomm.MAX, 1)",
    "scan(op=SUM) of an int": "comm.scan(1)",
    "exscan(op=joined)": 'comm.exscan("a", joined)',
    "scan(op=joined)": 'comm.scan("a", joined)',
    "scan(op=hypotenuse)": 'comm.scan("a", hypotenuse)',
    "allreduce(op=SUM) of an array of float64, shape (3,)": "comm.allreduce(np.ones(3))",
    "allreduce(op=SUM) of an array of float64, shape (2, 3)": "comm.allreduce(np.ones((2, 3)))",
    "allreduce(op=SUM) of an array of float32, shape (3,)": 'comm.allreduce(np.ones(3, "f4"))',
    "allreduce(op=SUM) of an array of float16, shape (3,)": 'comm.allreduce(np.ones(3, "f2"))',
    "allreduce(op=MIN) of an array of float64, shape (3,)": "comm.allreduce(np.ones(3), spcomm.MIN)",
    "reduce(op=SUM, root=1) of an array of float64, shape (50000,)": "comm.reduce(np.ones(50_000), root=1)",
    'allreduce(op=SUM, algorithm="slices") of an array of float64, shape (3,)':
        'comm.allreduce(np.ones(3), algorithm="slices")',
    "global_sum() of a float": "comm.global_sum(1.0)",
    "allreduce(op=joined)": "comm.allreduce(np.ones(3), joined)",
    'allreduce(op=joined, algorithm="tree")': 'comm.allreduce(np.ones(3), joined, "tree")',
    "allreduce(op=hypotenuse) of an array of float64, shape (3,)": "comm.allreduce(np.ones(3), hypotenuse)",
    "allreduce(op=hypotenuse)": "comm.allreduce(3.0, hypotenuse)",
    'allreduce(op=added, algorithm="slices") of an array of float64, shape (3,)':
        'comm.allreduce(np.ones(3), added, "slices")',
    'allreduce(op=added, algorithm="slices") of an array of float64, shape (4,)':
        'comm.allreduce(np.ones(4), added, "slices")',
    'reduce(op=added, root=1, algorithm="binary-swap") of an array of float64, shape (3,)':
        'comm.reduce(np.ones(3), added, 1, "binary-swap")',
    "scan(op=added) of an array of [('a', '<i4')], shape (3,)": 'comm.scan(np.zeros(3, [("a", "i4")]), added)',
    "scan(op=added) of an array of [('b', '<f4')], shape (3,)": 'comm.scan(np.zeros(3, [("b", "f4")]), added)',
    "gather(root=1)": "comm.gather(1, 1)",
}  # fmt: skip


@pytest.mark.sizes(2, 3)
@pytest.mark.options("default")
@pytest.mark.parametrize("first", list(MISMATCHES)[::3])
def test_different_calls(comm, first):
    """All nodes hear who called what, at which line, and go on."""
    for second in MISMATCHES:
        if first != second:
            caller = f"node {comm.members[0]}"
            with refused(spcomm.MismatchError, f"{caller}: {first}", f": {second}", "test_reduce.py:"):
                code = MISMATCHES[first if comm.rank == 0 else second]
                eval(compile(code, __file__, "eval"), globals(), {"comm": comm})
    with refused(spcomm.MismatchError, "reduce_scatter(op=SUM)"):
        counts = [2 * comm.size] + [0] * (comm.size - 1)
        comm.reduce_scatter(np.ones(2 * comm.size), counts=counts if comm.rank == 0 else counts[::-1])
    assert comm.allreduce(1) == comm.size


# ---- interruption


CTRL_C = {
    "allreduce-number": lambda comm, x: comm.allreduce(x),
    "reduce-number": lambda comm, x: comm.reduce(x, spcomm.MAX),
    "scan-number": lambda comm, x: comm.scan(x),
    "allreduce-wide": lambda comm, x: comm.allreduce(x << 70),
    "allreduce-tuple": lambda comm, x: comm.allreduce((x, np.full(10, x), np.full(50_000, x), 1j)),
    "allreduce-array": lambda comm, x: comm.allreduce(np.full(10, x)),
    "allreduce-large": lambda comm, x: comm.allreduce(np.full(50_000, x)),
    "tree": lambda comm, x: comm.allreduce(np.full(50_000, x), algorithm="tree"),
    "swap": lambda comm, x: comm.allreduce(np.full(50_000, x), algorithm="binary-swap"),
    "scan-array": lambda comm, x: comm.scan(np.full(50_000, x)),
    "reduce_scatter": lambda comm, x: comm.reduce_scatter(np.full(50_000, x)),
    "own": lambda comm, x: comm.allreduce(str(x), joined),
    "own-slices": lambda comm, x: comm.allreduce(np.full(50_000, x), added, "slices"),
    "own-swap": lambda comm, x: comm.allreduce(np.full(50_000, x), added, "binary-swap"),
    "own-tree": lambda comm, x: comm.allreduce([str(x)], joined, "tree"),
    "bcast": lambda comm, x: comm.bcast(np.full(20_000, x)),
    "gather": lambda comm, x: comm.gather(np.full(20_000, x)),
    "allgather": lambda comm, x: comm.allgather(np.full(20_000, x)),
    "scatter": lambda comm, x: comm.scatter([np.full(20_000, x)] * comm.size),
    "alltoall": lambda comm, x: comm.alltoall([np.full(20_000, x)] * comm.size),
}


@pytest.mark.sizes(2, 3, 4)
@pytest.mark.options("default", "bounded-arena")
@pytest.mark.parametrize("name", CTRL_C)
def test_ctrl_c_before_the_others_come(comm, name):
    """The call stays entered: it goes on with what was given before, and no other may begin."""
    call = CTRL_C[name]
    if comm.rank == 0:
        with handler(signal.SIGINT, signal.default_int_handler):
            with pytest.raises(KeyboardInterrupt):
                watcher = when_asleep(interrupt)
                call(comm, 5)
            watcher.join()
        for other in (lambda: comm.exscan("x", joined), lambda: comm.allreduce(np.ones(7)), comm.barrier):
            with refused(spcomm.MismatchError, "has left"):
                other()
        comm.send("now", spcomm.OTHERS)
    else:
        assert comm.recv(0) == "now"
    has_one_step = name not in ("allreduce-wide", "allreduce-tuple")
    interrupted = call(comm, 6 if comm.rank == 0 and has_one_step else 5)
    assert same(interrupted, call(comm, 5))
    comm.barrier()


def test_ctrl_c_between_rounds(comm):
    """The operator of node 0 interrupts nodes that combine nothing, wherever they are; no Python code takes results."""
    processes = comm.allgather(os.getpid())
    armed = []

    def raise_once(*_signal):
        if armed:
            armed.clear()
            raise KeyboardInterrupt

    def add(left, right):
        if comm.rank == 0:
            for process in processes[1::2]:
                os.kill(process, signal.SIGUSR1)
        return left + right

    call = partial(comm.allreduce, [comm.rank], spcomm.op(add), algorithm="tree")
    with handler(signal.SIGUSR1, raise_once):
        comm.barrier()
        for _ in range(20):
            results = []
            while not results:
                with contextlib.suppress(KeyboardInterrupt):
                    armed.append(True)
                    results.extend(starmap(call, [()]))
                    armed.clear()
            assert results == [list(range(comm.size))]
        comm.barrier()


@pytest.mark.sizes(2, 3)
@pytest.mark.options("default", "bounded-arena")
@pytest.mark.parametrize("number", [1, 2**70])
def test_ctrl_c_between_the_items_of_a_tuple(comm, number):
    """Node 0 sleeps in the second array, which the others copy first, since it is transposed."""
    large = np.full((2000, 2000), comm.rank + 1.0).T
    call, got = (lambda: comm.allreduce((number, np.arange(3), large))), None
    processes = comm.allgather(os.getpid())
    if comm.rank == 0:
        for process in processes[1:]:
            until_asleep(process)
        large = large.copy()
        with handler(signal.SIGINT, signal.default_int_handler), contextlib.suppress(KeyboardInterrupt):
            watcher = when_asleep(interrupt)
            got = call()
            watcher.join()  # it interrupts this if the others were faster
        watcher.join()
    got = call() if got is None else got
    assert got[0] == number * comm.size and same(got[1], np.arange(3) * comm.size)
    assert (got[2] == sum(range(1, comm.size + 1))).all()
    comm.barrier()


@pytest.mark.sizes(2, 3)
def test_ctrl_c_when_the_next_array_of_a_tuple_has_not_begun(comm):
    plain_array, calls = operators.plain_array, []

    def interrupted_once(*arguments):
        calls.append(arguments)
        if len(calls) == 4:  # both arrays were checked, and the first is combined
            raise KeyboardInterrupt
        return plain_array(*arguments)

    call = partial(comm.allreduce, (np.arange(3), np.arange(5.0)))
    if comm.rank == 0:
        with mock.patch.object(operators, "plain_array", interrupted_once), pytest.raises(KeyboardInterrupt):
            call()
    got = call()
    assert same(got[0], np.arange(3) * comm.size) and same(got[1], np.arange(5.0) * comm.size)
    comm.barrier()


@pytest.mark.sizes(2, 3)
def test_after_a_barrier_that_a_timeout_has_left(comm):
    if comm.rank == 0:
        with pytest.raises(spcomm.WaitTimeoutError):
            comm.barrier(timeout=0.01)
        large = np.ones(50_000)
        for call in (
            lambda: comm.allreduce(1),
            lambda: comm.allreduce(large),
            lambda: comm.scan("a", joined),
        ):
            with refused(spcomm.MismatchError, "has left barrier()"):
                call()
        comm.send("now", spcomm.OTHERS)
    else:
        comm.recv(0)
    comm.barrier()
    assert comm.allreduce(1) == comm.size
