# SPDX-License-Identifier: MIT
"""The codec at its borders, in a run of one node: what goes by which format, and arrives as what it was."""

import gc
import os
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spcomm
from naming import name_of
from nodetools import same
from spcomm._core import comm as core
from spcomm._core import segments


@pytest.fixture(scope="module")
def alone():
    return spcomm.startup()


def there_and_back(comm, value, **how):
    comm.send(value, comm.rank)
    return comm.recv(timeout=60, **how)


plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
)
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=8)
        | st.lists(inner, max_size=8).map(tuple)
        | st.dictionaries(plain.filter(lambda key: key == key), inner, max_size=6)
    ),
    max_leaves=60,
)


@given(values)
def test_anything_made_of_plain_things(value):
    assert same(there_and_back(spcomm.startup(), value), value)


@pytest.mark.parametrize("length", [*range(960, 1040), 4000])
def test_around_the_room_for_small_containers(alone, length):
    for value in ((b"x" * length,), ["x" * length], {"k": "é" * (length // 2)}, ("é" * length, 1)):
        assert same(there_and_back(alone, value), value)


@pytest.mark.parametrize("depth", range(1, 20))
def test_depth(alone, depth):
    value = 5
    for level in range(depth):
        value = [(value,), {level: value}][level % 2]
    assert there_and_back(alone, value) == value


def test_what_is_there_twice_arrives_as_one(alone):
    inner = [1]
    first, second = there_and_back(alone, [inner, inner])
    assert first is second
    first, second = there_and_back(alone, ({"a": inner}, (inner,)))
    assert first["a"] is second[0]
    first, second = there_and_back(alone, [[1], [1]])
    assert first is not second


def test_containers_within_themselves(alone):
    value = [1]
    value.append(value)
    arrived = there_and_back(alone, value)
    assert arrived[1] is arrived and arrived[0] == 1


def test_many_containers(alone):
    for count in range(10, 24):
        value = [[number] for number in range(count)]
        assert there_and_back(alone, value) == value


def test_keys_of_all_kinds_keep_their_order(alone):
    value = {"b": 1, 2: "a", None: (), (1, ("x",)): [], 1.5: {}, b"k": True, "a": {1: {2: 3}}}
    assert same(there_and_back(alone, value), value)


@pytest.mark.parametrize("count", [0, 1, 500, 511, 512, 513, 1100, 100_000])
@pytest.mark.parametrize(
    "dtype", ["i1", ">i4", "f8", "c16", "g", "G", "U3", ">U3", "S5", "V7", "M8[ns]", "m8[D]"]
)
def test_arrays_of_every_way_of_travelling(alone, dtype, count):
    array = np.arange(count * np.dtype(dtype).itemsize, dtype="u1").view(dtype)
    for sent in (array, array[::-1], array.reshape(-1, 1), array[:0]):
        arrived = there_and_back(alone, sent)
        assert same(arrived, np.ascontiguousarray(sent)) and arrived.dtype.str == sent.dtype.str
        assert arrived.flags.writeable and arrived.flags.aligned and arrived.flags.c_contiguous


def test_a_dtype_with_everything(alone):
    dtype = np.dtype({"names": ["a", "b"], "formats": ["i1", ("f8", (2,))], "offsets": [0, 8]}, align=True)
    arrived = there_and_back(alone, np.ones((3, 2), dtype, order="F"))
    assert arrived.dtype == dtype and arrived.dtype.isalignedstruct and arrived.flags.f_contiguous


def test_a_dtype_too_long_for_the_description(alone):
    dtype = np.dtype([(f"field_{number:06}", "i1") for number in range(6000)])
    arrived = there_and_back(alone, np.ones(2, dtype))
    assert arrived.dtype == dtype and arrived["field_005999"].tolist() == [1, 1]


def test_large_arrays_outlive_their_messages(alone):
    """Each lies in memory of its own; freeing views in any order frees it once."""
    kept = [there_and_back(alone, np.full(20_000, number)) for number in range(40)]
    views = [array[5:].reshape(5, -1) for array in kept]
    del kept[::2]
    gc.collect()
    assert all((view == number).all() for number, view in enumerate(views))
    del kept, views
    gc.collect()
    for number in range(2000):  # more than the arena holds at once
        assert there_and_back(alone, np.full(100_000, number))[-1] == number


def test_nothing_is_shared_with_the_sender(alone):
    for size in (1, 5, 500, 2000, 100_000):
        sent = np.zeros(size)
        arrived = there_and_back(alone, sent, copy=False)
        arrived[:] = 1
        assert not sent.any()


def test_no_reference_is_lost_or_kept(alone):
    dtype = np.dtype([("a", "i4")])
    things = [object, "text" * 50, b"bytes" * 50, np.zeros(3), np.zeros(3, dtype), (1, "x"), {"a": [1]}]
    for thing in things:
        there_and_back(alone, thing)
        before = sys.getrefcount(thing)
        for _ in range(50):
            there_and_back(alone, thing)
        assert sys.getrefcount(thing) == before
    numbers = [
        sys.getrefcount(array.dtype) for array in (there_and_back(alone, np.zeros(3, dtype)) for _ in "abc")
    ]
    assert numbers[1] == numbers[2]


class Fragile:
    """Can be pickled, not unpickled."""

    def __reduce__(self):
        return (int, ("not a number",))


def test_what_cannot_be_read_is_named_and_gone(alone):
    alone.send(Fragile(), alone.rank, tag=9)
    with pytest.raises(spcomm.SpcommError, match=r"node 0 \(tag 9\).*ValueError.*not a number") as caught:
        alone.recv(timeout=60)
    assert isinstance(caught.value.__cause__, ValueError)
    assert alone.try_recv_message() is None


@pytest.mark.parametrize(
    "value", [memoryview(b"x"), lambda: 0, [lambda: 0], (x for x in "x"), sys], ids=name_of
)
def test_what_cannot_be_pickled_is_named(alone, value):
    with pytest.raises(TypeError, match=f"{type(value).__name__} cannot be sent") as caught:
        alone.send(value, alone.rank)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    assert alone.try_recv_message() is None


class Unpicklable:
    def __reduce__(self):
        raise KeyError("of the program")


def test_an_error_of_the_program_that_keeps_a_value_from_being_pickled_is_its_cause(alone):
    with pytest.raises(TypeError, match="Unpicklable cannot be sent") as caught:
        alone.send(Unpicklable(), alone.rank)
    assert isinstance(caught.value.__cause__, KeyError)


def test_interrupting_pickle_is_no_wrong_argument(alone):
    class Stubborn:
        def __reduce__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        alone.send(Stubborn(), alone.rank)


# ---- out=


def test_out_of_the_same_shape_takes_any_memory_order(alone):
    sent = np.arange(12.0).reshape(3, 4)
    for out in (
        np.zeros((3, 4)),
        np.zeros((3, 4), order="F"),
        np.zeros((6, 8))[::2, ::2],
        np.zeros((3, 4), ">f8"),
    ):
        for order in "CF":
            out[:] = 0
            assert there_and_back(alone, np.asarray(sent, order=order), out=out) is out
            assert np.array_equal(out, sent)


def test_out_of_another_shape_is_filled_from_its_start(alone):
    out = np.zeros((2, 5), int)
    part = there_and_back(alone, np.arange(6).reshape(3, 2, order="F"), out=out)
    assert part.tolist() == [0, 3, 1, 4, 2, 5] and part.base is not None
    assert out.tolist() == [[0, 3, 1, 4, 2], [5, 0, 0, 0, 0]]
    assert there_and_back(alone, np.arange(10), out=out) is out


@pytest.mark.parametrize(
    "out",
    [5, [0.0], np.zeros(3, object), np.broadcast_to(np.zeros(1), 3)],
    ids=["int", "list", "object", "read"],
)
def test_out_that_is_none(alone, out):
    alone.send(np.zeros(3), alone.rank)
    with pytest.raises(TypeError, match=r"recv\(out=…\)"):
        alone.recv(out=out)
    assert alone.recv(timeout=60).shape == (3,)


def test_what_does_not_fit_stays_in_its_place(alone):
    for value in (np.zeros(5), "text", np.zeros(2, "f4"), np.zeros((2, 2))):
        alone.send(value, alone.rank)
    alone.send("last", alone.rank)
    with pytest.raises(spcomm.TruncationError, match=r"5 elements.*room for 4"):
        alone.recv(out=np.zeros(4))
    assert alone.recv().shape == (5,)
    with pytest.raises(TypeError, match="not an array"):
        alone.recv(out=np.zeros(4))
    assert alone.recv() == "text"
    with pytest.raises(TypeError, match=r"float32.*float64"):
        alone.recv(out=np.zeros(4))
    assert alone.recv().dtype == np.float32
    with pytest.raises(spcomm.TruncationError, match="same shape"):
        alone.recv(out=np.zeros((8, 8))[::2, ::2])
    assert alone.recv().shape == (2, 2)
    assert alone.recv() == "last" and alone.try_recv_message() is None


# ---- what no node of ours sends


class Forged:
    """Two nodes in this process. What the first one has sent can be changed before the second one receives it."""

    def __init__(self):
        self.segment = segments.Segment(2, ring=1 << 16, arena=1 << 20)
        self.sender, self.receiver = (core.Comm(self.segment.fd, rank, 0) for rank in (0, 1))

    def receive(self, value, old, new):
        self.sender.send(value, 1)
        data = os.pread(self.segment.fd, self.segment.size, 0)
        assert data.count(old) == 1 and len(new) <= len(old)
        os.pwrite(self.segment.fd, new, data.index(old))
        return self.receiver.recv(0, timeout=60)


@pytest.fixture
def forged():
    pair = Forged()
    yield pair
    pair.sender.send("still", 1)
    assert pair.receiver.recv(0, timeout=60) == "still"
    for one in (pair.sender, pair.receiver):
        one.close()
    pair.segment.close()


def item(kind, length):
    """The head of an item of a container: csrc/message/spc_format.h."""
    return bytes([kind]) + length.to_bytes(4, "little")


@pytest.mark.parametrize("kind", [9, 11], ids=["tuple", "list"])
def test_depth_that_is_never_sent(forged, kind):
    """A level is five bytes of a message, and a frame on the stack of whoever reads it."""
    levels = b"".join(item(kind, left) for left in range(600, -1, -5))
    with pytest.raises(spcomm.SpcommError, match=r"from node 0 \(tag 0\) cannot be read: damaged"):
        forged.receive((b"M" * 600,), item(1, 600) + b"M" * 600, levels)


@pytest.mark.parametrize("found", [np.dtype(object), np.dtype([("x", object)]), 5, "f8"], ids=str)
def test_bytes_are_never_references(forged, found):
    """An array's dtype comes as a pickle, which may be one of anything."""
    dtype = np.dtype([(f"field{number}", "i4") for number in range(20)])
    with pytest.raises(spcomm.SpcommError, match="cannot be read: the description of its array is damaged"):
        forged.receive(np.ones(30, dtype), pickle.dumps(dtype, 5), pickle.dumps(found, 5))


def test_limits_are_known(alone):
    assert core.limits(alone)["nodes"] == 1 and core.is_open(alone)
