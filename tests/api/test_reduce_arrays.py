# SPDX-License-Identifier: MIT
"""Reductions of arrays: every dtype, shape and length, against NumPy along the fixed tree."""

import enum

import numpy as np
import pytest

import spcomm
from nodetools import refused, same, tree

ALGORITHMS = (None, "tree", "flat", "slices", "binary-swap")
UFUNCS = {
    "SUM": np.add, "PROD": np.multiply, "MIN": np.minimum, "MAX": np.maximum, "LAND": np.logical_and,
    "LOR": np.logical_or, "LXOR": np.logical_xor, "BAND": np.bitwise_and, "BOR": np.bitwise_or, "BXOR": np.bitwise_xor,
}  # fmt: skip
INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
REALS = ("f4", "f8", "f2", "g")
GLOBAL = {
    (name, dtype) for name in ("SUM", "MIN", "MAX") for dtype in (*INTEGERS, "f4", "f8", ">i4", ">f4", ">f8")
}


def contribution(rank, shape, dtype):
    chance = np.random.default_rng([rank, int(np.prod(shape, dtype=int))])
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.asarray(
            chance.integers(limits.min, limits.max, shape, dtype.newbyteorder("="), endpoint=True)
        ).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(chance.random(shape) < 0.7)
    real = np.asarray(chance.standard_normal(shape) * 10.0 ** chance.integers(-2, 3, shape))
    if dtype.kind == "c":
        return np.asarray(real + 1j * chance.standard_normal(shape)).astype(dtype)
    return real.astype(dtype)


def operator_of(name):
    """As spcomm's: of logical ones the result keeps the type, bools are counted."""

    def combined(left, right):
        if name == "PROD" and left.dtype.char in "FD":  # NumPy's own may round once less
            parts = (
                left.real * right.real - left.imag * right.imag,
                left.real * right.imag + left.imag * right.real,
            )
            return np.asarray(np.stack(parts, -1).view(left.dtype)[..., 0])
        with np.errstate(all="ignore"):
            return np.asarray(UFUNCS[name](left, right)).astype(left.dtype)

    return combined


def prepared(array, name):
    """The array that is combined, also of one node alone."""
    if array.dtype.kind == "b" and name in ("SUM", "PROD"):
        return array.astype("i8")
    if name in ("LAND", "LOR", "LXOR"):
        return np.asarray(array != 0).astype(array.dtype.newbyteorder("="))
    return array.astype(array.dtype.newbyteorder("="))


def like(got, expected):
    if expected.dtype.char in "gG":  # there are bytes between
        return got.dtype == expected.dtype and got.shape == expected.shape and (got == expected).all()
    return same(got, expected)


def check_all(comm, name, shape, dtype, algorithms=(None,)):
    op = getattr(spcomm, name)
    everybody = [prepared(contribution(rank, shape, dtype), name) for rank in range(comm.size)]
    mine = contribution(comm.rank, shape, dtype)
    before = mine.copy()
    whole = tree(everybody, operator_of(name))
    for algorithm in algorithms:
        assert like(comm.allreduce(mine, op, algorithm), whole), algorithm
        root = len(everybody) // 2
        got = comm.reduce(mine, op, root, algorithm)
        assert like(got, whole) if comm.rank == root else got is None, algorithm
    if (name, dtype) in GLOBAL:
        got = getattr(comm, f"global_{name.lower()}")(mine)
        assert type(got) is np.ndarray and same(prepared(got, name), whole)
    assert like(comm.scan(mine, op), tree(everybody[: comm.rank + 1], operator_of(name)))
    got = comm.exscan(mine, op)
    assert like(got, tree(everybody[: comm.rank], operator_of(name))) if comm.rank else got is None
    if mine.ndim:
        assert like(comm.reduce_scatter(mine, op), np.array_split(whole, comm.size)[comm.rank])
    assert mine.tobytes() == before.tobytes() or dtype == "g"


@pytest.mark.parametrize("name", UFUNCS)
def test_operators_and_dtypes(comm, name):
    dtypes = [*INTEGERS, "?"]
    if name in ("SUM", "PROD"):
        dtypes += [*REALS, "c8", "c16", "G", ">f8", ">i4"]
    elif name in ("MIN", "MAX", "LAND", "LOR", "LXOR"):
        dtypes += [*REALS, ">f4"]
    for dtype in dtypes:
        for shape in ((), (0,), (1,), (3,), (8,), (32,), (33,), (6, 7), (2, 0, 3), (500,)):
            check_all(comm, name, shape, dtype)


@pytest.mark.parametrize("dtype", ["f2", "c8", "c16", "g", "?", "M8[s]", "m8[s]", "S3", "U2"])
def test_other_dtypes_are_summed_rightly_or_refused_by_name(comm, dtype):
    """Nothing in between: either NumPy's result, or an error on every node before it enters."""
    array = np.ones(6, dtype="i8").astype(dtype)
    try:
        result = comm.global_sum(array)
    except (TypeError, ValueError) as error:
        assert str(array.dtype) in str(error) and "global_sum" in str(error)
    else:
        expected = np.ones(6, dtype=int) if dtype == "?" else array  # bools are counted
        assert np.array_equal(result, tree([expected] * comm.size, np.add))
    comm.barrier()


@pytest.mark.smoke
def test_long_ones_in_a_row(comm):
    for step in range(12):
        total = comm.global_sum(np.full(20_000 + 777 * step, comm.rank + step))
        assert (total == sum(rank + step for rank in range(comm.size))).all()
        assert comm.global_sum(step) == step * comm.size


@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "c16"])
def test_every_algorithm_gives_the_same_bits(comm, dtype):
    """Just below and above each crossover, and with a rest."""
    for length in (0, 1, 2, 7, 511, 512, 2047, 2049, 4095, 4097, 8191, 8192, 8193, 32_767, 40_001):
        check_all(comm, "SUM", (length,), dtype, ALGORITHMS)


@pytest.mark.sizes(2, 3, 4, 8)
@pytest.mark.options("default", "tiny", "small", "bounded-arena", "part", "nothing")
@pytest.mark.parametrize("length", [3000, 150_001])
def test_long_arrays_and_small_arenas(comm, length):
    """With no room for blocks all nodes take another way, and say nothing of it."""
    check_all(comm, "SUM", (length,), "f8", ALGORITHMS)
    check_all(comm, "MIN", (length,), "i2")
    check_all(comm, "MAX", (length,), "f4")
    check_all(comm, "PROD", (length // 5, 5), "f2")
    everybody = [contribution(rank, (length,), "f8") for rank in range(comm.size)]
    for root in range(comm.size):
        got = comm.reduce(everybody[comm.rank], root=root)
        assert like(got, tree(everybody, np.add)) if comm.rank == root else got is None


@pytest.mark.smoke
def test_counts(comm):
    """Parts of any lengths, rows of any shape; also none at all."""
    for shape in ((10,), (1001, 3), (30_000, 2), (4, 0), (0, 3)):
        length = shape[0]
        for counts in (
            [length] + [0] * (comm.size - 1),
            [0] * (comm.size - 1) + [length],
            [length // comm.size] * (comm.size - 1) + [length - length // comm.size * (comm.size - 1)],
        ):
            first = sum(counts[: comm.rank])
            for dtype in ("f8", "f2"):
                whole = tree([contribution(rank, shape, dtype) for rank in range(comm.size)], np.add)
                got = comm.reduce_scatter(contribution(comm.rank, shape, dtype), counts=np.array(counts))
                assert like(got, whole[first : first + counts[comm.rank]])


@pytest.mark.parametrize("value", ["i1", "u2", "i4", "i8", "u8", "f4", "f8", ">i4", ">f8"])
def test_pairs(comm, value):
    """The lower index of equal values wins, and NaN; also where the pairs are packed or in another byte order."""
    aligned = np.dtype([("value", value), ("index", "i8")], align=True)
    for length in (1, 5, 3000, 30_000):
        for dtype in (aligned, np.dtype([("value", value), ("index", "i8")])):
            chance = np.random.default_rng(length)
            values = chance.integers(0, 4, (comm.size, length)).astype(value)
            if value[-2] == "f":
                values[chance.random(values.shape) < 0.2] = np.nan
            indices = chance.integers(-9, 9, (comm.size, length))
            mine = np.zeros(length, dtype)
            mine["value"], mine["index"] = values[comm.rank], indices[comm.rank]
            for op, best in ((spcomm.MINLOC, np.min), (spcomm.MAXLOC, np.max)):
                got = comm.allreduce(mine, op)
                least = best(values, 0)
                alike = (values == least) | (np.isnan(values) & np.isnan(least))
                assert got.dtype.names == ("value", "index")
                assert np.array_equal(got["value"], least, equal_nan=True)
                assert np.array_equal(got["index"], np.where(alike, indices, 99).min(0))


def test_times(comm):
    times = np.array([(3.5, (comm.rank, 2, 0, 0)), (comm.rank, (1, 0, 0, 0))] * 50, spcomm.SimTime.dtype)
    total = comm.allreduce(times)
    assert (total["time"][::2] == 3.5 * comm.size).all() and (total["priorities"] == 0).all()
    least = comm.reduce(times, op=spcomm.MIN, root=comm.size - 1)
    if comm.rank == comm.size - 1:
        assert least[0]["priorities"].tolist() == [0, 2, 0, 0] and least[1]["time"] == 0
    assert comm.scan(times, op=spcomm.MAX)[1]["time"] == comm.rank
    moments = np.array(["2000-01-01", "2001-01-01"], "M8[D]") + comm.rank
    assert (comm.allreduce(moments, spcomm.MIN) == moments - comm.rank).all()
    assert (comm.allreduce(moments - moments[0]) == (moments - moments[0]) * comm.size).all()


@pytest.mark.parametrize(
    "layout", ["strided", "fortran", "transposed", "reversed", "read-only", "unaligned", "shared", "mapped"]
)
def test_memory_layouts(comm, layout):
    """One node's array lies otherwise than that of the others."""
    for length in (64, 40_000):
        plain = np.arange(float(length)).reshape(4, -1) + comm.rank
        buffer = bytearray(plain.nbytes + 1)
        shared = comm.empty(plain.shape)
        shared[:] = plain
        unaligned = np.frombuffer(buffer, "f8", plain.size, 1).reshape(plain.shape)
        unaligned[:] = plain
        mine = {
            "strided": np.repeat(plain, 2, 1)[:, ::2], "fortran": np.asfortranarray(plain), "unaligned": unaligned,
            "transposed": plain.T.copy().T, "read-only": np.frombuffer(plain.tobytes()).reshape(plain.shape),
            "shared": shared, "mapped": plain.view(np.memmap), "reversed": plain[::-1].copy()[::-1],
        }[layout]  # fmt: skip
        given = mine if comm.rank == 0 else plain
        for got in [comm.global_sum(given), *(comm.allreduce(given, algorithm=one) for one in ALGORITHMS)]:
            assert type(got) is np.ndarray
            assert np.array_equal(got, tree([plain - comm.rank + rank for rank in range(comm.size)], np.add))
        assert np.array_equal(mine, plain)
    flat = np.broadcast_to(np.arange(10.0), (4, 10))
    assert np.array_equal(comm.global_sum(flat), flat * comm.size)


@pytest.mark.parametrize("length", [3, 3000, 100_000])
def test_results_are_private_and_writable(comm, length):
    mine = np.full(length, comm.rank)
    for algorithm in ALGORITHMS:
        results = [comm.allreduce(mine, algorithm=algorithm) for _ in range(3)]
        results += [comm.global_sum(mine), comm.scan(mine)]
        results.append(comm.reduce_scatter(mine))
        for number, result in enumerate(results):
            assert result.flags.writeable and not np.shares_memory(result, mine)
            result[:] = 10 * comm.rank + number
        comm.barrier()
        assert all((result == 10 * comm.rank + number).all() for number, result in enumerate(results))
        assert (mine == comm.rank).all()
        comm.barrier()


@pytest.mark.options("default", "bounded-arena")
@pytest.mark.sizes(2, 3)
def test_blocks_come_back(comm):
    """Results hold memory of the arena only as long as somebody sees them."""
    from spcomm._core.arrays import bytes_given_out

    before = bytes_given_out(comm)
    mine = np.arange(50_000.0)
    for number in range(60):
        view = comm.allreduce(mine)[10:20]
        assert view[0] == 10.0 * comm.size
        del view
        comm.reduce(mine, root=number % comm.size)
        comm.scan(mine)
        comm.barrier()
    assert bytes_given_out(comm) == before


def test_a_result_is_moved_on(comm):
    """It is a block: the next node gets it, and sees it as it is."""
    total = comm.allreduce(np.full(30_000, comm.rank))
    total += comm.rank
    comm.move(total, (comm.rank + 1) % comm.size)
    assert total.size == 0
    previous = (comm.rank - 1) % comm.size
    assert (comm.recv(previous) == sum(range(comm.size)) + previous).all()


@pytest.mark.sizes(2, 3, 4, 8)
@pytest.mark.options("default", "tree", "bounded-arena")
def test_in_parts_of_a_split(comm):
    ranks = range(comm.size - 1 - (comm.size - 1 - comm.rank) % 2, -1, -2)
    with comm.split(comm.rank % 2, key=-comm.rank) as half:
        for length in (5, 5000, 60_000):
            mine, everybody = (
                contribution(comm.rank, length, "f8"),
                [contribution(r, length, "f8") for r in ranks],
            )
            assert same(half.allreduce(mine), tree(everybody, np.add))
            assert same(half.scan(mine), tree(everybody[: half.rank + 1], np.add))
            assert like(comm.allreduce(np.full(length, comm.rank)), np.full(length, sum(range(comm.size))))


# ---- bad input


@pytest.mark.parametrize("dtype", ["O", "S3", "U2", [("a", "i4")]])
def test_dtypes_that_are_refused(comm, dtype):
    array = np.zeros(6, dtype)
    for op in (spcomm.SUM, spcomm.MAX, spcomm.LAND):
        with refused(TypeError, f"allreduce(x, op={op.name})", f"an array of {array.dtype}"):
            comm.allreduce(array, op)
    with refused(TypeError, "reduce_scatter(x, op=SUM)"):
        comm.reduce_scatter(array)
    with refused((TypeError, ValueError), "global_sum"):
        comm.global_sum(array)
    comm.barrier()


def test_operators_that_do_not_know_a_dtype(comm):
    for array, op, why in (
        (np.ones(3, "c16"), spcomm.MIN, "no order"),
        (np.ones(3), spcomm.BAND, "ints and bools"),
        (np.ones(3, "c8"), spcomm.LOR, "cannot be an array of complex64"),
        (np.ones(3, "f2"), spcomm.BXOR, "ints and bools"),
        (np.zeros(3, "M8[s]"), spcomm.SUM, "points in time"),
        (np.ones(3), spcomm.MINLOC, "[('value', T), ('index', 'i8')]"),
        (np.zeros(3, [("value", "f8"), ("index", "i4")]), spcomm.MAXLOC, "('index', 'i8')"),
        (np.zeros(3, [("value", "f8"), ("index", "i8")]), spcomm.SUM, "not made of numbers"),
    ):
        for call in (comm.allreduce, comm.reduce, comm.scan, comm.exscan, comm.reduce_scatter):
            with refused(TypeError, f"{call.__name__}(x, op={op.name})", why):
                call(array, op)
    comm.barrier()


@spcomm.op
def first(left, _right):
    return left


class Tagged(np.ndarray):
    """Knows more than its numbers."""


class Metres(float):
    pass


class Exact(np.float64):
    pass


class Moment(spcomm.SimTime):
    pass


class Level(enum.IntEnum):
    LOW = 1


class Column:
    """As a column of pandas: it is no NumPy array, and has a dtype."""

    dtype, shape, ndim = np.dtype(float), (2,), 1

    def __iter__(self):
        return iter((1.0, 2.0))

    def to_numpy(self):
        return np.array([1.0, 2.0])


class Tensor:
    dtype = np.dtype(float)

    def numpy(self):
        return np.array([1.0, 2.0])


class OnDevice:
    dtype, __cuda_array_interface__ = np.dtype(float), None


REFUSED_CLASSES = [
    (
        np.ones(2).view(Tagged),
        " Tagged of float64: what Tagged adds to its numbers would be lost; give np.asarray(x)",
    ),
    (np.array(3.0).view(Tagged), " Tagged of float64"),
    (np.ma.masked_array([1, 2]), "a numpy MaskedArray of int64: its mask would be lost; give x.filled(…)"),
    (np.ones((1, 1)).view(np.matrix), "a numpy matrix of float64"),
    (np.ones(2).view(np.recarray), "recarray"),
    (Metres(3), "a Metres: what Metres adds to its numbers would be lost; give float(x)"),
    (Exact(3), " Exact of float64"),
    (Moment(3), "a Moment: what Moment adds to its numbers would be lost; give SimTime(x)"),
    ((1, Metres(3)), "a Metres"),
    (Column(), " Column of float64: give x.to_numpy()"),
    (Tensor(), " Tensor of float64: give x.numpy()"),
    (OnDevice(), " OnDevice of float64: give x.get()"),
]


@pytest.mark.parametrize("number", range(len(REFUSED_CLASSES)))
def test_classes_that_know_more_than_their_numbers_are_refused(comm, number):
    """Units and masks would be lost in silence. The program's own operators get the objects themselves."""
    value, words = REFUSED_CLASSES[number]  # made here, because pickle makes a number of NumPy of some
    for call in (comm.allreduce, comm.reduce, comm.scan, comm.exscan):
        for op in (spcomm.SUM, spcomm.MAX):
            with refused(
                TypeError, f"{call.__name__}(x, op={op.name})", words, "make an operator with @spcomm.op"
            ):
                call(value, op)
    for name in ("global_sum", "global_min", "global_max"):
        with refused(TypeError, f"{name}(x)", words):
            getattr(comm, name)(value)
    with refused(TypeError, "reduce_scatter(x, op=SUM)", words):
        comm.reduce_scatter([value] * comm.size)
    with refused(TypeError, "SUM(left, right)", words):
        spcomm.SUM(value, value)
    if not isinstance(value, np.generic):
        assert type(comm.allreduce(value, first)) is type(value)


def test_a_pair_of_such_a_number_is_refused_and_members_of_enumerations_are_ints(comm):
    with refused(TypeError, "op=MIN", "a Metres"):
        comm.allreduce((Metres(2), comm.rank), spcomm.MINLOC)
    assert same(comm.allreduce(Level.LOW), comm.size) and same(comm.global_sum(Level.LOW), comm.size)
    assert same(comm.allreduce(np.ones(2, "f4")[0]), comm.size * np.float32(1))


def test_bad_counts(comm):
    array, size = np.zeros((comm.size, 2)), comm.size
    with refused(TypeError, "without axes"):
        comm.reduce_scatter(np.array(3.0))
    assert comm.reduce_scatter(array, counts=[1] * size).shape == (1, 2)
