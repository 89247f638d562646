# SPDX-License-Identifier: MIT
"""Reductions of arrays: every dtype, shape and length, against NumPy along the fixed tree."""

import numpy as np
import pytest

from nodetools import refused, tree

OPERATORS = {"global_sum": np.add, "global_min": np.minimum, "global_max": np.maximum}


def contribution(rank, shape, dtype):
    chance = np.random.default_rng([rank, int(np.prod(shape, dtype=int))])
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return np.asarray(chance.standard_normal(shape) * 10.0 ** chance.integers(-3, 4, shape)).astype(dtype)
    limits, native = np.iinfo(dtype), dtype.newbyteorder("=")
    return np.asarray(chance.integers(limits.min, limits.max, shape, native, endpoint=True)).astype(dtype)


def check(comm, name, shape, dtype):
    mine = contribution(comm.rank, shape, dtype)
    before = mine.copy()
    result = getattr(comm, name)(mine)
    with np.errstate(all="ignore"):
        expected = tree([contribution(rank, shape, dtype) for rank in range(comm.size)], OPERATORS[name])
    assert type(result) is np.ndarray and result.shape == mine.shape
    assert result.dtype in (mine.dtype, mine.dtype.newbyteorder("="))
    assert result.astype(mine.dtype).tobytes() == np.asarray(expected, dtype=mine.dtype).tobytes()
    assert mine.tobytes() == before.tobytes()
    return result


@pytest.mark.parametrize("name", OPERATORS)
def test_dtypes(comm, name):
    for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", ">i4", ">f8"):
        for shape in [(), (1,), (0,), (3,), (4,), (5,), (33,), (6, 7), (2, 3, 4), (1000,)]:
            check(comm, name, shape, dtype)


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


def test_object_and_structured_arrays_are_refused(comm):
    for array in (np.array([1, 2], dtype=object), np.zeros(3, dtype=[("a", "i4")])):
        with refused((TypeError, ValueError), "global_sum"):
            comm.global_sum(array)
    comm.barrier()


@pytest.mark.parametrize("length", [31, 32, 33, 4096, 8191, 8192, 8193, 16_384, 70_000, 300_001])
def test_lengths(comm, length):
    """In the line, in the scratch, in tiles."""
    check(comm, "global_sum", (length,), "f8")
    check(comm, "global_max", (length,), "i2")


@pytest.mark.smoke
def test_long_ones_in_a_row(comm):
    for step in range(12):
        total = comm.global_sum(np.full(20_000 + 777 * step, comm.rank + step))
        assert (total == sum(rank + step for rank in range(comm.size))).all()
        assert comm.global_sum(step) == step * comm.size


@pytest.mark.parametrize("layout", ["strided", "fortran", "reversed", "transposed", "read-only", "broadcast"])
def test_memory_layouts(comm, layout):
    base = np.arange(60.0).reshape(6, 10) + comm.rank
    array = {
        "strided": base[::2, ::3], "fortran": np.asfortranarray(base), "reversed": base[::-1], "transposed": base.T,
        "read-only": np.frombuffer(base.tobytes()).reshape(6, 10), "broadcast": np.broadcast_to(base[0], (4, 10)),
    }[layout]  # fmt: skip
    result = comm.global_sum(array)
    assert np.array_equal(
        result, np.asarray(array) * comm.size + sum(range(comm.size)) - comm.rank * comm.size
    )


def test_layouts_may_differ_between_nodes(comm):
    """Equal shapes, one node's in Fortran order: elements meet their own kind."""
    array = np.arange(12.0).reshape(3, 4)
    result = comm.global_sum(np.asfortranarray(array) if comm.rank == 0 else array)
    assert np.array_equal(result, array * comm.size)


@pytest.mark.parametrize("length", [3, 1000, 100_000])
def test_results_are_new_writable_and_private(comm, length):
    mine = np.arange(length)
    results = [comm.global_sum(mine) for _ in range(4)]
    for index, result in enumerate(results):
        assert result.flags.writeable and not np.shares_memory(result, mine)
        result[:] = comm.rank * 10 + index
    comm.barrier()
    for index, result in enumerate(results):
        assert (result == comm.rank * 10 + index).all()
    assert np.array_equal(mine, np.arange(length))
