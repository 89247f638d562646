# SPDX-License-Identifier: MIT
"""Arrays keep dtype, shape and order; what arrives is writable and private; what was sent can be used at once."""

import numpy as np
import pytest

import spcomm
from nodetools import neighbours, pass_on, refused, same
from spcomm._core.comm import limits

STRUCTURED = np.dtype([("name", "S5"), ("point", "f8", (3,)), ("flag", "?"), ("big", ">i4")])
DTYPES = [
    "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", "c8", "c16",
    "S7", "U5", "V6", "M8[ns]", "M8[D]", "M8[25s]", "m8[us]", "M8", ">i4", ">f8", ">U3", ">M8[s]", ">c16",
]  # fmt: skip


def filled(shape, dtype):
    """Every byte different from its neighbours where the dtype allows it."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=int))
    raw = np.random.default_rng(count + dtype.itemsize).integers(
        1, 120, count * dtype.itemsize, dtype=np.uint8
    )
    if dtype.kind == "U":
        return np.array(["x" * (index % 4) for index in range(count)], dtype=dtype).reshape(shape)
    if dtype.kind in "?b" or dtype.char == "g":
        return (raw[:: dtype.itemsize] % 2).astype(dtype).reshape(shape)
    return raw.view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(comm, dtype):
    for shape in [(), (1,), (0,), (7,), (3, 4), (2, 0, 3), (40, 50)]:
        array = filled(shape, dtype)
        arrived = pass_on(comm, array)
        assert type(arrived) is np.ndarray and arrived.shape == array.shape
        # Arrays arrive in native byte order, or as they were; equal in either case.
        assert arrived.dtype in (array.dtype, array.dtype.newbyteorder("="))
        if dtype == "g":  # a long double has bytes without meaning
            assert np.array_equal(arrived, array)
        else:
            assert arrived.astype(array.dtype).tobytes() == array.tobytes()
        assert arrived.flags.writeable


@pytest.mark.smoke
def test_structured(comm):
    array = np.zeros((4, 3), STRUCTURED)
    array["name"] = b"ab"
    array["point"] = np.arange(36).reshape(4, 3, 3)
    array["big"] = -5
    arrived = pass_on(comm, array)
    assert arrived.dtype.names == STRUCTURED.names and arrived.shape == (4, 3)
    for name in STRUCTURED.names:
        assert np.array_equal(arrived[name], array[name])
    record = pass_on(comm, array[0, 0])
    assert isinstance(record, np.void) and record["name"] == b"ab"


def test_structured_with_titles_offsets_and_objects(comm):
    spaced = np.zeros(
        3, np.dtype({"names": ["a", "b"], "formats": ["i2", "f8"], "offsets": [4, 16], "itemsize": 40})
    )
    spaced["b"] = [1, 2, 3]
    arrived = pass_on(comm, spaced)
    assert arrived.dtype == spaced.dtype and np.array_equal(arrived["b"], spaced["b"])
    mixed = np.array([(1, "x"), (2, [3])], dtype=[("n", "i4"), ("o", "O")])
    arrived = pass_on(comm, mixed)
    assert arrived.dtype == mixed.dtype and arrived["o"].tolist() == ["x", [3]]


def views():
    base = np.arange(60 * 70).reshape(60, 70)
    return {
        "every-other": base[::2, ::3],
        "reversed": base[::-1, ::-1],
        "transposed": np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
        "column": base[:, 5],
        "broadcast": np.broadcast_to(np.arange(5), (4, 5)),
        "negative": np.arange(10)[::-1],
        "misaligned": np.frombuffer(bytearray(range(81)), dtype=np.uint8)[1:].view("f8"),
        "diagonal": np.diagonal(base),
        "swapaxes": np.zeros((3, 1, 2)).swapaxes(0, 2),
        "one-element-slice": base[3:4, 2:3],
        "field": np.zeros(5, [("a", "i1"), ("b", "f8")])["b"],
    }


@pytest.mark.smoke
@pytest.mark.parametrize("key", views())
def test_any_memory_layout(comm, key):
    array = views()[key]
    before = array.copy()
    arrived = pass_on(comm, array)
    assert same(arrived, before) and arrived.flags.writeable and arrived.flags.aligned
    assert same(array, before)


def test_sixty_four_dimensions(comm):
    array = np.arange(4).reshape((1,) * 62 + (2, 2))
    assert same(pass_on(comm, array), array)


def test_read_only_sources(comm):
    for length in (3, 500, 100_000):
        array = np.arange(length)
        array.flags.writeable = False
        arrived = pass_on(comm, array)
        assert arrived.flags.writeable and not array.flags.writeable
        arrived[0] = 9
        assert array[0] == 0


class Tagged(np.ndarray):
    """A subclass with a value of its own."""

    def __array_finalize__(self, other):
        self.note = getattr(other, "note", None)

    def __reduce__(self):
        function, arguments, content = super().__reduce__()
        return function, arguments, (content, self.note)

    def __setstate__(self, content):
        super().__setstate__(content[0])
        self.note = content[1]


def test_subclasses_stay(comm):
    array = np.arange(6).view(Tagged)
    array.note = "kept"
    arrived = pass_on(comm, array)
    assert type(arrived) is Tagged and arrived.note == "kept" and np.array_equal(arrived, array)
    masked = np.ma.array([1, 2, 3], mask=[0, 1, 0])
    arrived = pass_on(comm, masked)
    assert type(arrived) is type(masked) and arrived.tolist() == [1, None, 3]
    matrix = np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
    assert type(pass_on(comm, matrix)) is type(matrix)


LENGTHS = [1, 5, 6, 100, 1024, 1025, 10_000, 131_072, 400_000]  # doubles: inline, ring, arena


@pytest.mark.parametrize("length", LENGTHS)
def test_results_are_private_and_sources_reusable(comm, length):
    """The source is overwritten right after send, each receiver overwrites what it got: nobody notices."""
    following, previous = neighbours(comm)
    source = np.full(length, float(comm.rank))
    for step in range(4):
        source[:] = comm.rank * 100 + step
        comm.send(source, following)
        comm.send(source, spcomm.ALL, tag=1)
        source[:] = -1
    kept = []
    for step in range(4):
        mine = comm.recv(previous, tag=0)
        assert mine.flags.writeable and (mine == previous * 100 + step).all()
        mine[:] = -2
        kept.append(mine)
        for sender in range(comm.size):
            everybody = comm.recv(sender, tag=1)
            assert everybody.flags.writeable and (everybody == sender * 100 + step).all()
            everybody[:] = comm.rank + 1000
            kept.append(everybody)
    assert all((array == (-2 if index % (comm.size + 1) == 0 else comm.rank + 1000)).all()
               for index, array in enumerate(kept))  # fmt: skip
    assert (source == -1).all()


def test_shared_view_if_asked_for(comm):
    """copy=False: the same contents; several receivers may share the memory, and then it is read-only."""
    source = np.arange(200_000)
    if comm.rank == 0:
        comm.send(source, spcomm.ALL)
    arrived = comm.recv(0, copy=False)
    assert same(np.asarray(arrived), source)
    if arrived.flags.writeable:  # then it is this node's own
        arrived[:] = comm.rank
        comm.barrier()
        assert (arrived == comm.rank).all()
    else:
        comm.barrier()
        with pytest.raises(ValueError):
            arrived[0] = 1


@pytest.mark.parametrize("length", LENGTHS)
def test_into_an_array_of_ones_own(comm, length):
    source = np.arange(length, dtype="f8") + comm.rank
    out = np.full(length, -1.0)
    result = pass_on(comm, source, out=out)
    assert result is out
    assert np.array_equal(out, np.arange(length) + neighbours(comm)[1])


def test_out_too_small_keeps_the_message(comm):
    for length in (4, 700, 200_000):
        comm.send(np.arange(length), comm.rank, 7)
        with refused(spcomm.TruncationError, length, length - 1, "out"):
            comm.recv(comm.rank, 7, out=np.zeros(length - 1, dtype=int))
        comm.send("later", comm.rank, 7)
        assert np.array_equal(comm.recv(comm.rank, 7), np.arange(length))
        assert comm.recv(comm.rank, 7) == "later"


@pytest.mark.smoke
def test_views_kept_for_ever_block_nobody(comm):
    """Far more than the arena holds is kept; the rest goes in parts, and all of it stays intact."""
    following, previous = neighbours(comm)
    length = 50_000 if limits(comm)["arena_bytes"] > 1 << 20 else 5_000
    kept = []
    for step in range(40):
        comm.send(np.full(length, step), following)
        kept.append(comm.recv(previous))
    comm.send("small", following)
    assert comm.recv(previous) == "small"
    assert all((array == step).all() for step, array in enumerate(kept))


def test_received_arrays_travel_on(comm):
    """An array that lies in another node's arena can be sent on, also after its first owner has moved on."""
    following, previous = neighbours(comm)
    array = np.full(100_000, comm.rank)
    for step in range(comm.size + 1):
        comm.send(array, following)
        array = comm.recv(previous)
        assert (array == (comm.rank - step - 1) % comm.size).all()
