# SPDX-License-Identifier: MIT
"""Arrays that live in shared memory: comm.empty, comm.move, received arrays; who holds how much of the arena."""

import gc

import numpy as np
import pytest

import spcomm
from nodetools import neighbours, pass_on, refused, same
from spcomm._core.arrays import bytes_given_out
from spcomm._core.comm import limits

KEPT = 1 << 18  # bytes: so long a copy lies in the arena
LENGTH = 20_000  # float64: more than goes by the ring
WHOLE = ("default", "part", "no-futex")  # with an arena that has room for all of this


def address(array):
    return array.__array_interface__["data"][0]


def held(comm):
    """Bytes of this node's arena that anybody holds, once all nodes have dropped what they dropped."""
    gc.collect()
    comm.barrier()
    count = bytes_given_out(comm)
    comm.barrier()
    return count


def has_arena(comm):
    return limits(comm)["arena_bytes"] > 1 << 20


def to_itself(comm, array):
    comm.move(array, comm.rank)
    return comm.recv(comm.rank)


# ---- making


@pytest.mark.smoke
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(
    "shape", [(), 0, 3, (7,), (2, 0), [4, 5], (60, 70, 3), (1,) * 20, np.int16(9)], ids=str
)
def test_empty_gives_an_array_like_any_other(comm, shape, order):
    for dtype in (float, "i2", "S7", "S", ">u4", "M8[us]", [("a", "i1"), ("b", "f8", (2,))], (float, 3)):
        array, model = comm.empty(shape, dtype, order), np.empty(shape, dtype, order)
        assert type(array) is np.ndarray and array.shape == model.shape and array.dtype == model.dtype
        assert array.flags.c_contiguous == model.flags.c_contiguous
        assert array.flags.f_contiguous == model.flags.f_contiguous
        assert array.flags.writeable and array.flags.aligned and address(array) % 64 == 0
        array[...] = np.zeros((), array.dtype)
        assert array.tobytes() == bytes(array.nbytes)


@pytest.mark.sizes(1, 2)
@pytest.mark.options("default", "tiny")
def test_what_cannot_be_made(comm):
    with pytest.raises(TypeError):
        comm.empty(3, "nonsense")


# ---- who holds a block, and how long


@pytest.mark.near
@pytest.mark.options(*WHOLE)
def test_a_block_lives_as_long_as_its_last_view(comm):
    views = {
        "slice": lambda a: a[5:7],
        "reshaped": lambda a: a.reshape(2, -1),
        "transposed": lambda a: a.reshape(2, -1).T,
        "bytes": lambda a: a.view(np.uint8),
        "subclass": lambda a: a.view(np.recarray),
        "memoryview": lambda a: memoryview(a)[3:],
        "frombuffer": lambda a: np.frombuffer(a)[3:],
        "element of a list": lambda a: [a],
        "iterator": lambda a: a.flat,
        "view of a view": lambda a: a[1:][::2].reshape(-1, 1)[:, 0],
    }
    before = held(comm)
    following, previous = neighbours(comm)
    for name, derive in views.items():
        for made in (True, False):
            if not made:
                comm.send(np.arange(LENGTH), following)
            array = comm.empty(LENGTH) if made else comm.recv(previous)
            view = derive(array)
            assert held(comm) > before, name
            del array
            assert held(comm) > before, name
            del view
            assert held(comm) == before, name


@pytest.mark.near
@pytest.mark.options(*WHOLE)
def test_blocks_come_back_in_any_order(comm):
    before = held(comm)
    following, previous = neighbours(comm)
    for step in range(30):
        comm.send(np.full(LENGTH, step), following, step)
    arrays = [comm.recv(previous, step) for step in range(30)] + [comm.empty(LENGTH) for _ in range(30)]
    assert held(comm) >= before + 60 * LENGTH * 8
    for index in np.random.default_rng(comm.rank).permutation(60)[::-1]:
        arrays[index] = None
    assert held(comm) == before


@pytest.mark.options(*WHOLE)
def test_what_nobody_receives_is_freed_with_its_communicator(comm):
    before = held(comm)
    with comm.split() as part:
        for _ in range(3):
            part.send(np.zeros(LENGTH), neighbours(comm)[0])
            part.move(part.empty(LENGTH), neighbours(comm)[0])
        part.barrier()
    del part
    comm.barrier()
    comm.poll()  # what had arrived, but not been looked at
    assert held(comm) == before


# ---- moving


@pytest.mark.near
@pytest.mark.smoke
def test_an_array_goes_around_without_a_copy(comm):
    """It is the same memory when it comes back, and everybody has written to it."""
    following, previous = neighbours(comm)
    array = comm.empty((LENGTH, 2))
    array[:] = comm.rank
    start = address(array)
    for hop in range(3 * comm.size):
        comm.move(array, following, hop)
        assert array.shape == (0, 2) and array.size == 0
        with pytest.raises(ValueError, match="read-only"):
            array[:] = -1  # what the new owner has would not change
        array = comm.recv(previous, hop)
        origin = (comm.rank - hop - 1) % comm.size
        assert array.shape == (LENGTH, 2) and array.flags.writeable and (array == origin + hop).all()
        array += 1
    assert address(array) == start or not has_arena(comm)


@pytest.mark.near
@pytest.mark.options(*WHOLE)
def test_moved_blocks_are_counted_where_they_come_from(comm):
    before = held(comm)
    array = comm.empty(LENGTH)
    full = held(comm)
    assert full > before
    comm.move(array, neighbours(comm)[0])
    array = comm.recv()
    assert held(comm) == full
    comm.send(array, comm.rank)
    copied = comm.recv(comm.rank)
    assert held(comm) > full and address(copied) != address(array)
    del array, copied
    assert held(comm) == before


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(
    "dtype", ["?", "f8", ">i4", "S3", "M8[D]", "c16", [("a", ">i2"), ("b", "f4", (2,))]], ids=str
)
def test_shape_dtype_and_order_stay(comm, dtype, order):
    for shape in ((), (0,), (5,), (3, 4), (40, 1, 60), (2,) * 15):
        array = comm.empty(shape, dtype, order)
        array[...] = np.frombuffer(bytes([0, 1] * array.itemsize)[: array.itemsize], array.dtype)[0]
        expected = array.copy(order)
        comm.move(array, neighbours(comm)[0])
        assert array.shape == (0, *shape[1:]) and array.size == 0
        assert array.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=")
        arrived = comm.recv()
        assert same(arrived.astype(expected.dtype), expected) and arrived.flags.writeable
        assert arrived.flags.f_contiguous == expected.flags.f_contiguous


@pytest.mark.sizes(1, 2)
def test_an_empty_array_is_harmless(comm):
    array = comm.empty((3, 4))
    to_itself(comm, array)
    assert array.sum() == 0 and (array + 1).shape == (0, 4) and array.tolist() == [] and not array.copy().size
    with pytest.raises(ValueError, match="read-only"):
        array[:] = 5
    assert to_itself(comm, array).shape == (0, 4)
    scalar = comm.empty(())
    scalar[()] = 4
    assert to_itself(comm, scalar) == 4 and scalar.shape == (0,)


@pytest.mark.sizes(1, 3)
@pytest.mark.options("default", "tiny")
@pytest.mark.parametrize("received", [False, True])
def test_views_forbid_it(comm, received):
    kinds = [
        lambda a: a[1:],
        lambda a: a[:],
        lambda a: a.reshape(-1, 2),
        lambda a: a.T,
        lambda a: a.view("i8")[:0],
        lambda a: np.frombuffer(a),
        lambda a: a[1:].view(np.recarray),
        lambda a: a.base,
    ]
    following, previous = neighbours(comm)
    for kind in kinds:
        array = comm.empty(LENGTH)
        array[:] = 3
        if received:
            comm.send(array, following)
            array = comm.recv(previous)
        view = kind(array)
        with refused(spcomm.BufferInUseError, "move(a)", "send"):
            comm.move(array, comm.rank, 1)
        assert array.shape == (LENGTH,) and (array == 3).all()
        del view
        assert (to_itself(comm, array) == 3).all() and array.size == 0
        assert comm.try_recv_message(comm.rank, 1) is None


@pytest.mark.sizes(1, 2)
@pytest.mark.options("default")
def test_only_whole_arrays_are_moved(comm):
    for part in (comm.empty(LENGTH)[1:], comm.empty((30, 40))[:, 0], np.arange(9)[::3]):
        with refused(spcomm.BufferInUseError, "only whole arrays"):
            comm.move(part, comm.rank)
    for view in (np.frombuffer(bytes(64)), np.ndarray(3, buffer=bytearray(24))):
        with refused(spcomm.BufferInUseError, "does not own its memory"):
            comm.move(view, comm.rank)
    owner = np.arange(6)
    with refused(spcomm.BufferInUseError, "another array"):
        comm.move(owner.reshape(2, 3), comm.rank)
    turned = comm.empty((30, 40)).reshape(40, 30)  # the whole of it, and nothing else sees it
    place = address(turned)
    comm.move(turned, comm.rank)
    arrived = comm.recv(comm.rank)
    assert arrived.shape == (40, 30) and address(arrived) == place
    arrived.shape = (1, 1200)
    comm.move(arrived, comm.rank)
    assert address(comm.recv(comm.rank)) == place


module_level = None


@pytest.mark.sizes(1, 2)
@pytest.mark.options("default")
def test_other_variables_see_it_empty(comm):
    """Variables of the function and of its module do not see the memory: there is no copy on their behalf."""
    global module_level
    array = module_level = other = comm.empty(LENGTH)
    place = address(array)
    comm.move(array, comm.rank)
    assert other.size == module_level.size == 0
    array = comm.recv(comm.rank)
    assert address(array) == place
    arrays = [comm.empty(LENGTH) for _ in range(3)]
    places = [address(one) for one in arrays]
    while arrays:
        one = arrays.pop()
        comm.move(one, comm.rank)
    assert [address(comm.recv(comm.rank)) for _ in places] == places[::-1]
    [one] = [comm.empty(LENGTH)]
    place = address(one)
    assert address((lambda: (comm.move(one, comm.rank), comm.recv(comm.rank))[1])()) == place


@pytest.mark.sizes(1, 2)
@pytest.mark.options("default")
def test_containers_and_outer_functions_make_a_copy(comm):
    """Any other reference could see the memory: it finds the array empty, and the receiver gets a copy."""

    def by_another_function(array):
        comm.move(array, comm.rank)

    array = comm.empty(LENGTH)
    array[:] = 3
    boxes = {"deep": [{"deeper": (array, array)}]}
    comm.move(boxes["deep"][0]["deeper"][1], comm.rank)
    assert array.size == boxes["deep"][0]["deeper"][0].size == 0
    array = comm.recv(comm.rank)
    by_another_function(array)
    assert array.size == 0 and (comm.recv(comm.rank) == 3).all()


@pytest.mark.sizes(1, 2)
@pytest.mark.options("default", "tiny")
def test_what_nobody_can_see_through_makes_a_copy(comm):
    """Views that refer to the array itself, and are invisible: they keep the old memory, the receiver has its own."""
    for kind in (
        lambda a: a.view(np.recarray),
        lambda a: a.flat,
        lambda a: np.nditer(a, op_flags=["readwrite"]),
        lambda a: memoryview(a),
        lambda a: np.lib.stride_tricks.as_strided(a, (3,), (8,)),
    ):
        for array in (comm.empty(LENGTH), np.zeros(LENGTH), np.zeros(3)):
            array[:] = 3
            view = kind(array)
            arrived = to_itself(comm, array)
            assert array.size == 0 and (arrived == 3).all()
            arrived[:] = 4
            assert next(iter(view)) == 3
            del view, array
            assert (arrived == 4).all()


@pytest.mark.sizes(1, 2)
def test_an_iterator_that_is_used_after_a_move_stays_within_the_old_memory(comm):
    for make in (comm.empty, np.zeros):
        for shape in ((LENGTH,), (2, LENGTH), ()):
            array = make(shape)
            array[...] = 3
            flat = array.flat
            arrived = to_itself(comm, array)
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 4
            others = [np.full(3, 5.0) for _ in range(100)]
            assert flat[len(flat) - 1] == 3
            with pytest.raises(ValueError, match="read-only"):
                flat[:] = np.arange(len(flat))
            assert flat[len(flat) - 1] == 3 and flat[0] == 3
            assert (arrived == 3).all() and all((other == 5).all() for other in others)


@pytest.mark.options("default", "tiny", "small")
def test_ordinary_arrays_are_copied_and_emptied(comm):
    following, previous = neighbours(comm)
    for length in (3, 900, LENGTH):
        for array in (np.full(length, 2.5), np.full((length, 1), 2.5).reshape(1, length)):
            shape = array.shape
            comm.move(array, following)
            arrived = comm.recv(previous)
            assert (
                array.size == 0
                and arrived.shape == shape
                and (arrived == 2.5).all()
                and arrived.flags.writeable
            )
        kept = np.arange(float(length))
        view = kept[1:]
        comm.move(kept, following)
        comm.recv(previous)[:] = -1
        assert kept.size == 0 and view.shape == (length - 1,) and (view > 0).all()


@pytest.mark.sizes(1, 2)
@pytest.mark.options("default")
def test_bad_moves_do_nothing(comm):
    array = comm.empty(LENGTH)
    array[:] = 1
    for dest in (spcomm.ALL, spcomm.OTHERS, [0], spcomm.Destination()):
        with refused(TypeError, "move(dest=", "one node"):
            comm.move(array, dest)
    with comm.split() as part:
        pass
    with refused(spcomm.SpcommError, "move(dest=0)", "closed"):
        part.move(array, 0)
    with refused(spcomm.SpcommError, "empty()", "closed"):
        part.empty(3)
    assert (to_itself(comm, array) == 1).all()


@pytest.mark.options(*WHOLE)
def test_a_move_to_nobody_empties_and_frees(comm):
    before = held(comm)
    array = comm.empty(LENGTH)
    comm.move(array, spcomm.PROC_NULL)
    assert array.shape == (0,) and held(comm) == before
    private = np.zeros(3)
    comm.move(private, spcomm.PROC_NULL)
    assert private.shape == (0,)


# ---- several receivers, and objects


@pytest.mark.near
@pytest.mark.sizes(2, 3, 4)
@pytest.mark.options(*WHOLE)
@pytest.mark.parametrize("length", [KEPT - 8, KEPT, 2 << 20])
def test_copies_of_large_arrays_lie_in_the_arena_of_their_node(comm, length):
    before = held(comm)
    array = comm.bcast(np.arange(length // 8) if comm.rank == 0 else None)
    now = held(comm)
    if comm.rank != 0:
        array += comm.rank
        assert array.flags.writeable and address(array) % 16 == 0
    comm.barrier()
    assert array[0] == comm.rank and array[-1] == length // 8 - 1 + comm.rank
    others = sum(comm.allgather(now - before))
    wanted = comm.size - 1 if length >= KEPT else 0  # one may have kept the block of the root itself
    assert others >= wanted * length and others < (comm.size - 1) * (length + 4096)
    del array
    assert held(comm) == before


@pytest.mark.sizes(3)
@pytest.mark.options("no-memfd")
def test_what_is_kept_leaves_room_for_what_is_sent(comm):
    """An arena of 4 MiB: copies of 512 KiB that are kept take half of it, and the others lie in private memory."""
    kept = [comm.bcast(np.full(1 << 16, step) if comm.rank == 0 else None) for step in range(40)]
    own = held(comm)
    assert comm.rank == 0 or own <= 2 << 20
    assert all((array == step).all() and array.flags.writeable for step, array in enumerate(kept))
    del kept
    held(comm)


@pytest.mark.near
@pytest.mark.sizes(2, 4)
@pytest.mark.options(*WHOLE)
def test_a_shared_array_can_be_neither_written_nor_moved(comm):
    before = held(comm)
    if comm.rank == 0:
        comm.send(np.arange(LENGTH), spcomm.ALL)
        comm.send({"a": np.arange(LENGTH)}, spcomm.ALL)
    for array in (comm.recv(0, copy=False), comm.recv(0, copy=False)["a"]):
        with pytest.raises(ValueError):
            array[0] = 1
        with pytest.raises(ValueError):
            array.flags.writeable = True
        with refused(spcomm.BufferInUseError, "other nodes", "copy=False"):
            comm.move(array, comm.rank)
        assert same(array, np.arange(LENGTH))
    assert held(comm) > before or comm.rank != 0
    del array
    assert held(comm) == before


class Record:
    """A class as users write it."""

    def __init__(self, name, array):
        self.name, self.array, self.again = name, array, array


@pytest.mark.near
@pytest.mark.options(*WHOLE, "tiny", "small")
def test_arrays_in_objects(comm):
    before = held(comm) if has_arena(comm) else 0
    following, previous = neighbours(comm)
    whole = np.arange(LENGTH, dtype="f4")
    grid = np.asfortranarray(np.arange(90.0 * 80).reshape(90, 80))
    value = {
        "a": whole,
        "b": [grid, np.arange(3), whole[::2]],
        "record": Record("r", np.ones((2, LENGTH), bool)),
        5: "x",
    }
    comm.send(value, following)
    whole[0] = -1
    arrived = comm.recv(previous)
    assert list(arrived) == list(value) and arrived[5] == "x"
    whole[0] = 0
    assert same(arrived["a"], whole) and all(map(same, arrived["b"], value["b"]))
    record = arrived["record"]
    assert record.array is record.again and same(record.array, value["record"].array) and record.name == "r"
    assert arrived["b"][0].flags.f_contiguous
    for array in (arrived["a"], *arrived["b"], record.array):
        assert array.flags.writeable and array.flags.aligned
        array[:] = 1
    if has_arena(comm):
        kept = arrived["b"][0][3:]
        del array, arrived, record
        assert held(comm) > before
        del kept
        assert held(comm) == before


@pytest.mark.sizes(1, 3)
@pytest.mark.options("default")
def test_many_arrays_in_an_object(comm):
    values = [np.full(600 + index % 9, index) for index in range(4100)]  # more than lie beside the pickle
    for one, other in zip(pass_on(comm, values), values, strict=True):
        assert same(one, other)


@pytest.mark.sizes(1, 2)
@pytest.mark.options("default", "tiny")
def test_an_array_out_of_an_object_can_be_moved(comm):
    comm.send({"a": np.arange(LENGTH), "b": np.arange(LENGTH)}, comm.rank)
    arrived = comm.recv(comm.rank)
    moved = to_itself(comm, arrived["a"])
    assert arrived["a"].size == 0 and same(moved, np.arange(LENGTH))
    moved[:] = 0
    assert same(arrived["b"], np.arange(LENGTH))
    view = arrived["b"][2:]
    with refused(spcomm.BufferInUseError, "another array"):
        comm.move(arrived["b"], comm.rank)
    assert view[0] == 2


@pytest.mark.options(*WHOLE, "tiny", "small")
def test_objects_for_several_are_their_own(comm):
    if comm.rank == 0:
        comm.send([np.zeros(LENGTH), np.zeros(3)], spcomm.ALL)
    arrived = comm.recv(0)
    arrived[0] += comm.rank
    comm.barrier()
    assert (arrived[0] == comm.rank).all()


# ---- nobody blocks anybody


@pytest.mark.sizes(1, 2, 4)
@pytest.mark.options("small")
def test_a_full_arena_stops_nothing(comm):
    """64 KiB: a few arrays that are kept fill it. The others go in parts, and lie in private memory."""
    following, previous = neighbours(comm)
    kept = [comm.empty(1000) for _ in range(20)]
    for number, array in enumerate(kept):
        array[:] = number
    for step in range(20):
        array = comm.empty(1500)
        array[:] = step
        comm.move(array, following, 1)
        comm.send(np.full(5000, step), following, 2)
        comm.send({"a": np.full(5000, step)}, following, 3)
        kept += [comm.recv(previous, 1), comm.recv(previous, 2), comm.recv(previous, 3)["a"]]
        assert all((array == step).all() for array in kept[-3:])
    assert all((array == number).all() for number, array in enumerate(kept[:20]))


# ---- whatever one node does with what it has, no other sees it


def test_nobody_sees_what_others_write(comm):
    random = np.random.default_rng(3 + comm.rank)
    kept = []
    following, previous = neighbours(comm)
    own = 0  # messages to this node itself that it has not received
    for step in range(60):
        length = int(random.integers(1, 6000))
        array = comm.empty(length) if random.random() < 0.5 else np.empty(length)
        array[:] = step
        way = int(random.integers(4))
        if way == 0:
            comm.move(array, following, 1)
        elif way == 1:
            comm.send([array, step], following, 1)
        else:
            comm.send(array, following if way == 2 else [following, comm.rank], 1)
            array[:] = -1
        own += way == 3
        messages = [comm.recv_message(previous, 1)]
        while (message := comm.try_recv_message(comm.rank, 1)) is not None and comm.size > 1:
            messages.append(message)
        if message is not None:
            messages.append(message)
        own -= sum(message.source == comm.rank for message in messages)
        for message in messages:
            arrived = message.data[0] if isinstance(message.data, list) else message.data
            assert (arrived == arrived[0]).all() and arrived[0] <= step
            mark = float(random.random())
            arrived[:] = mark
            kept.append((arrived, mark))
        if random.random() < 0.3:
            del kept[int(random.integers(len(kept)))]
    for _ in range(own if comm.size > 1 else 0):  # long ones, which try_recv did not find yet
        comm.recv(comm.rank, 1)
    comm.barrier()
    for array, mark in kept:
        assert (array == mark).all()
    comm.barrier()
    while comm.try_recv_message() is not None:  # to itself, after its last look
        pass


@pytest.mark.sizes(2, 3)
@pytest.mark.options("perturb")
def test_in_a_perturbed_run(comm):
    """Where sends of this length wait for their receivers, moves do: one node after the other."""
    for step in range(10):
        for sender in range(comm.size):
            following, previous = (sender + 1) % comm.size, sender
            if comm.rank == sender:
                array = comm.empty(2000)
                array[:] = step
                comm.move(array, following)
                assert array.size == 0
            elif comm.rank == following:
                assert (comm.recv(previous) == step).all()
