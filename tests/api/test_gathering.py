# SPDX-License-Identifier: MIT
"""bcast, gather, allgather, scatter, alltoall: what arrives, that it is private, and what goes wrong."""

import dataclasses
import signal
import threading

import numpy as np
import pytest

import spcomm
from nodetools import refused, same, when_asleep
from operations import COLLECTIVE, call
from test_signals import handler, interrupt

STRUCTURED = np.dtype([("name", "S5"), ("point", "f8", (3,)), ("big", ">i4")])
# The lengths go over every border: what goes with the phase, the ring, the arena.
OBJECTS = {
    "none": lambda rank: None,
    "int": lambda rank: rank - 5,
    "long-int": lambda rank: 10**30 + rank,
    "bool": lambda rank: rank % 2 == 0,
    "float": lambda rank: rank / 7,
    "text": lambda rank: f"é{rank}" * 50,
    "bytes": lambda rank: bytes([rank]) * 5000,
    "tuple": lambda rank: (rank, [None, "x" * rank], {"a": rank}),
    "time": lambda rank: spcomm.SimTime(rank, 2),
    "set": lambda rank: {rank, "two"},
    "short": lambda rank: np.arange(20.0) + rank,
    "4095": lambda rank: np.full(4095 - 24, rank, "u1"),
    "4097": lambda rank: np.full(4097 - 24, rank, "u1"),
    "8K": lambda rank: np.full(1025, rank),
    "200K": lambda rank: np.full((50, 500), rank + 0.5),
    "fortran": lambda rank: np.asfortranarray(np.arange(5000.0).reshape(50, 100) * rank),
    "strided": lambda rank: np.arange(4000)[::2] + rank,
    "structured": lambda rank: np.array([(b"ab", (1, 2, rank), -rank)] * (3 + rank), STRUCTURED),
    "empty": lambda rank: np.zeros((0, rank + 1), "f4"),
    "objects": lambda rank: np.array([rank, "a", None], object),
    "dict-of-arrays": lambda rank: {"a": np.arange(3 * rank), "b": np.full(30_000, rank)},
    "uneven": lambda rank: np.arange(7**rank % 60_013),
}


def comparable(value):
    """As it arrives: in C order, unless it is Fortran's."""
    return (
        np.ascontiguousarray(value)
        if isinstance(value, np.ndarray) and not value.flags.f_contiguous
        else value
    )


def like(one, other):
    return same(comparable(one), comparable(other))


@pytest.mark.smoke
@pytest.mark.parametrize("kind", OBJECTS)
def test_every_operation_and_root(comm, kind):
    made = OBJECTS[kind]
    everybody = [made(rank) for rank in range(comm.size)]
    mine = made(comm.rank)
    for root in range(comm.size):
        got = comm.bcast(mine if comm.rank == root else None, root)
        assert got is mine if comm.rank == root else like(got, everybody[root])
        got = comm.gather(mine, root=root)
        assert like(got, everybody) if comm.rank == root else got is None
        got = comm.scatter(everybody if comm.rank == root else None, root)
        assert like(got, mine)
    assert like(comm.allgather(mine), everybody)
    got = comm.alltoall([(comm.rank, made(rank)) for rank in range(comm.size)])
    assert like(got, [(source, made(comm.rank)) for source in range(comm.size)])
    assert like(comm.alltoall(everybody), [mine] * comm.size)
    assert like(mine, made(comm.rank)), "what was given has changed"


@pytest.mark.options(
    "default", "tiny", "least", "small", "bounded", "bounded-arena", "part", "tree", "nothing"
)
@pytest.mark.sizes(1, 2, 3, 8)
def test_all_lengths_one_after_another(comm):
    """Without anything between them: a message of one operation is never taken for that of another."""
    for number in range(18):
        length = (0, 1, 3, 500, 512, 513, 1024, 5000, 20_000)[number % 9]
        root = number % comm.size
        array = np.full(length, comm.rank * 1000 + number)
        got = comm.bcast(array if comm.rank == root else None, root)
        assert same(got, np.full(length, root * 1000 + number))
        got = comm.gather(array[: length // (comm.rank + 1)], root)
        if comm.rank == root:
            assert same(
                got, [np.full(length // (rank + 1), rank * 1000 + number) for rank in range(comm.size)]
            )
        got = comm.alltoall([array[: length // (rank + 1)] for rank in range(comm.size)])
        length //= comm.rank + 1
        assert same(got, [np.full(length, rank * 1000 + number) for rank in range(comm.size)])


@pytest.mark.options("narrow")
@pytest.mark.sizes(2, 3, 8)
def test_more_than_the_queues_hold(comm):
    """Everybody gives before it gets, and no queue can take what it gives."""
    arrays = [np.full(40_000, comm.rank * 10 + rank) for rank in range(comm.size)]
    for _ in range(3):
        got = comm.alltoall(arrays)
        assert same(got, [np.full(40_000, rank * 10 + comm.rank) for rank in range(comm.size)])
        assert same(comm.allgather(arrays[0]), [np.full(40_000, rank * 10) for rank in range(comm.size)])


def test_between_other_calls(comm):
    """Messages with any tag, fuzzy barriers, reductions, cycles: none of them sees what the others move."""
    following = (comm.rank + 1) % comm.size
    for number in range(20):
        array = np.full(300 * number, number)
        comm.send(array, following, tag=number)
        barrier = comm.fuzzy_barrier()
        assert same(comm.allgather(array), [array] * comm.size)
        assert comm.probe().tag == number
        assert comm.global_sum(number) == number * comm.size
        assert same(comm.bcast(array, number % comm.size), array)
        comm.coordinated_send(number, spcomm.ALL)
        assert sorted(message.data for message in comm.coordinated_messages()) == [number] * comm.size
        barrier.wait()
        assert same(comm.recv(spcomm.ANY), array)


@pytest.mark.sizes(2, 3, 4, 8)
@pytest.mark.options("default", "tree", "part", "bounded-arena")
def test_in_parts_of_a_split(comm):
    """Both halves at once, with other ranks than in the run, and the run's own in between."""
    ranks = range(comm.size - 1 - (comm.size - 1 - comm.rank) % 2, -1, -2)
    with comm.split(comm.rank % 2, key=-comm.rank) as half:
        for length in (1, 5000, 30_000):
            mine = np.full(length, comm.rank)
            members = [np.full(length, rank) for rank in ranks]
            assert same(half.allgather(mine), members)
            assert same(half.bcast(mine, half.size - 1), members[-1])
            assert same(comm.bcast(mine, comm.size - 1), np.full(length, comm.size - 1))
            assert same(half.alltoall(members), [mine] * half.size)


# ---- private results


@pytest.mark.parametrize("length", [10, 2000, 30_000])
def test_results_are_private_and_writable(comm, length):
    """Everybody overwrites all that it has got, and what it gave; nobody sees that of another."""
    mine = np.full(length, comm.rank)
    for root in range(comm.size):
        for copy in (True, False):
            got = comm.bcast(mine if comm.rank == root else None, root, copy=copy)
            assert (got == root).all()
            if copy:
                got[:] = -1
                mine[:] = comm.rank
            comm.barrier()
            if not copy and comm.rank != root and not got.flags.writeable:
                with pytest.raises(ValueError):
                    got[0] = 1
    for values in (
        comm.allgather(mine),
        comm.gather(mine, comm.size - 1) or [],
        comm.alltoall([mine] * comm.size),
    ):
        for rank, value in enumerate(values):
            assert (value == rank).all() and value.flags.writeable
            value[:] = -1 - comm.rank
        assert (mine == comm.rank).all()
        comm.barrier()
        assert all((value == -1 - comm.rank).all() for value in values)
    rows = np.repeat(np.arange(comm.size), length).reshape(comm.size, length)
    row = comm.scatter(rows, comm.size - 1)
    assert (row == comm.rank).all() and row.flags.writeable
    row[:] = -1
    assert (rows == np.arange(comm.size)[:, None]).all()


@dataclasses.dataclass
class Holder:
    array: np.ndarray


@pytest.mark.parametrize("length", [0, 10, 2000, 30_000])
def test_read_only_arrays_within_objects_arrive_writable(comm, length):
    """As they do alone: what a receiver gets is its own. The sender's stay as they are."""
    mine = np.arange(float(length))
    mine.flags.writeable = False
    objects = np.empty(1, object)
    objects[0] = mine
    objects.flags.writeable = False
    wide = np.broadcast_to(mine, (2, length))
    buffer = np.frombuffer(b"12345678" * length)
    value = {
        "a": mine,
        "b": [mine, (1, wide, buffer)],
        "c": objects,
        "d": Holder(mine),
        "e": mine.reshape(-1, 1).T,
    }

    def check(got):
        arrays = got["a"], *got["b"][1][1:], got["c"], got["c"][0], got["d"].array, got["e"]
        assert got["a"] is got["b"][0] is got["d"].array is got["c"][0]
        assert all(array.flags.writeable for array in arrays)
        assert (
            same(got["a"], mine)
            and same(got["b"][1][1], np.array(wide))
            and same(got["e"], np.array(value["e"]))
        )
        got["a"][:] = -1

    if comm.size > 1:
        comm.send(value, (comm.rank + 1) % comm.size)
        check(comm.recv())
        got = comm.bcast(value if comm.rank == 0 else None)
        if comm.rank != 0:
            check(got)
    check(comm.scatter([value] * comm.size))
    for got in (*comm.allgather(value), *(comm.gather(value) or []), *comm.alltoall([value] * comm.size)):
        check(got)
    assert not mine.flags.writeable and same(mine, np.arange(float(length)))


def test_containers_of_ones_own_are_copies(comm):
    inner = [comm.rank]
    for got in (comm.allgather({"a": inner}), comm.gather({"a": inner}, comm.rank * 0) or []):
        assert got == [{"a": [rank]} for rank in range(comm.size)] or (comm.rank != 0 and got == [])
        for value in got:
            value["a"].append("changed")
    assert inner == [comm.rank]


def test_objects_that_do_not_change_are_given_on(comm):
    text = "x" * 1000
    assert comm.allgather(text)[comm.rank] is text


@pytest.mark.near
@pytest.mark.options("default")
def test_one_block_for_all_without_copies(comm):
    """Every node but the root sees the same memory, as long as it likes."""
    views = [comm.bcast(np.full(20_000, number), 0, copy=False) for number in range(20)]
    assert all((view == number).all() for number, view in enumerate(views))
    assert all(not view.flags.writeable for view in views) or comm.rank == 0 or comm.size == 2
    views = comm.allgather(np.full(20_000, comm.rank), copy=False)
    assert [view[0] for view in views] == list(range(comm.size))


def test_sequences_of_all_kinds(comm):
    """Lists, tuples, ranges, generators, and arrays by their first axis."""
    everybody = range(comm.size)
    for items in (list(everybody), tuple(everybody), everybody, (rank for rank in everybody)):
        assert comm.scatter(items) == comm.rank
    got = comm.scatter(np.arange(comm.size, dtype="f4"))
    assert type(got) is np.float32 and got == comm.rank
    table = np.arange(comm.size * 6).reshape(comm.size, 2, 3)
    assert same(comm.scatter(table, comm.size - 1), table[comm.rank])
    assert same(comm.scatter(table.transpose(0, 2, 1)), table[comm.rank].T.copy())
    assert same(comm.alltoall(table), [table[comm.rank]] * comm.size)
    assert same(comm.scatter(np.array_split(np.arange(10), comm.size)),
                np.array_split(np.arange(10), comm.size)[comm.rank])  # fmt: skip


# ---- bad input


class Unpicklable:
    def __reduce__(self):
        raise ZeroDivisionError("no way")


class Unreadable:
    def __reduce__(self):
        return int, ("no number",)


@spcomm.op
def either(left, _right):
    return left


class Table:
    """As a table of pandas: it iterates over the names of its columns."""

    iloc = columns = ("a", "b")

    def __iter__(self):
        return iter(self.columns)

    def keys(self):
        return self.columns


class Columns:
    """As a table of Polars: it iterates over its columns."""

    columns = ("a", "b")

    def __iter__(self):
        return iter(([1], [2]))


def others_hear(comm, call, culprit):
    """The culprit raises its own error; those who need its part are told, the others are not; all go on."""
    if comm.rank == culprit:
        with refused(TypeError, "cannot be pickled", "no way"):
            call()
    else:
        with refused(spcomm.SpcommError, f"node {comm.members[culprit]} gave nothing", "TypeError", "no way"):
            call()
    assert comm.allgather(comm.rank) == list(range(comm.size))


@pytest.mark.parametrize("long", [False, True])
def test_what_cannot_be_pickled(comm, long):
    good = np.zeros(20_000) if long else 1
    for culprit in {0, comm.size - 1}:
        thing = Unpicklable() if comm.rank == culprit else good
        others_hear(comm, lambda thing=thing, culprit=culprit: comm.bcast(thing, culprit), culprit)
        others_hear(comm, lambda thing=thing: comm.allgather(thing), culprit)
        others_hear(comm, lambda thing=thing: comm.alltoall([good] * (comm.size - 1) + [thing]), culprit)
        items = [thing] + [good] * (comm.size - 1)
        others_hear(comm, lambda items=items, culprit=culprit: comm.scatter(items, culprit), culprit)
        root = (culprit + 1) % comm.size
        if comm.rank in (culprit, root):
            others_hear(comm, lambda thing=thing, root=root: comm.gather(thing, root), culprit)
        else:
            assert comm.gather(good, root) is None
            assert comm.allgather(comm.rank) == list(range(comm.size))


@pytest.mark.sizes(2, 3, 8)
def test_what_cannot_be_unpickled(comm):
    """The nodes that get it raise, after they have got all the rest; nothing stays behind."""
    thing = Unreadable() if comm.rank == 1 else np.zeros(20_000)
    said = (
        "the contribution of node 1 cannot be read: unpickling failed: ValueError: invalid literal for int()"
    )
    with refused(spcomm.SpcommError, f"allgather(): {said}", "Classes must be defined"):
        comm.allgather(thing)
    if comm.rank == 0:
        with refused(spcomm.SpcommError, f"gather(root=0): {said}"):
            comm.gather(thing)
        with refused(spcomm.SpcommError, f"reduce(op=either, root=0): {said}"):
            comm.reduce(thing, either)
    else:
        assert comm.gather(thing) is None and comm.reduce(thing, either) is None
    assert comm.allgather(comm.rank) == list(range(comm.size))


@pytest.mark.parametrize("name", ["scatter", "alltoall"])
def test_a_wrong_number_of_items(comm, name):
    call = getattr(comm, name)
    for items in ([], [1] * (comm.size + 1), np.zeros((comm.size + 1, 30_000))):
        if comm.rank == 0:
            with refused(ValueError, f"{name}(objs)", f"{len(items)} item", f"{comm.size} node"):
                call(items)
        else:
            with refused(spcomm.SpcommError, f"node {comm.members[0]} gave nothing", f"{len(items)} item"):
                call([None] * comm.size)
    for items, advice in (
        *((items, "sequence") for items in (None, 3, "ab", b"ab", np.array(3))),
        ({"a": 1}, "a dict, which iterates over its keys; give list(objs.values())"),
        ({1, 2}, "a set, which has no order; give sorted(objs)"),
        (
            Table(),
            "a Table, which iterates over the names of its columns; divide its rows: [objs.iloc[rows] for",
        ),
        (Columns(), "a Columns, which iterates over its columns; give a list"),
    ):
        if comm.rank == 0:
            with refused(TypeError, f"{name}(objs=", advice):
                call(items)
        else:
            with refused(spcomm.SpcommError, f"node {comm.members[0]} gave nothing", "TypeError"):
                call([None] * comm.size)
    assert comm.alltoall([comm.rank] * comm.size) == list(range(comm.size))


@pytest.mark.sizes(2, 3, 8)
@pytest.mark.parametrize("first", ["gather", "bcast", "allgather"])
@pytest.mark.parametrize("second", COLLECTIVE)
def test_different_operations_and_roots(comm, first, second):
    """All nodes hear who called what; nothing of it is received by a later operation. The roots always differ."""
    if first == COLLECTIVE[second].method == "allgather":
        return
    words = COLLECTIVE[first].words(own=0, peer=1) + COLLECTIVE[second].words(own=1, peer=0)
    with refused(spcomm.MismatchError, f"node {comm.members[0]}: {first}(", *words):
        if comm.rank == 0:
            call(comm, COLLECTIVE[first], own=0, peer=1)
        else:
            call(comm, COLLECTIVE[second], own=1, peer=0)
    if "coordinated" in second:  # the cycle of the others is open
        assert comm.coordinated_recv() is None
    assert same(
        comm.allgather(np.full(20_000, comm.rank)), [np.full(20_000, rank) for rank in range(comm.size)]
    )


# ---- interruption, threads


@pytest.mark.sizes(2, 3)
@pytest.mark.options("tiny", "least", "bounded")
def test_ctrl_c_while_data_move(comm):
    """Without an arena: node 1 leaves the call after it has entered, and does not send; node 0 then waits for its
    part, and is interrupted, too. Both go on."""
    arrays = [np.full(20_000, rank) for rank in range(comm.size)]
    with handler(signal.SIGINT, signal.default_int_handler):
        if comm.rank == 1:
            with pytest.raises(KeyboardInterrupt):
                watcher = when_asleep(interrupt)
                comm.gather(arrays[1])
            watcher.join()
            comm.send("entered", 0)
            assert comm.recv(0, tag=2) == "interrupted"
        elif comm.rank == 0:
            assert comm.recv(1) == "entered"
            with pytest.raises(KeyboardInterrupt):
                watcher = when_asleep(interrupt)
                comm.gather(arrays[0])
            watcher.join()
            with refused(spcomm.MismatchError, "has left gather(root=0)"):
                comm.global_sum(1)
            with refused(spcomm.MismatchError, "has left gather(root=0)"):
                comm.fuzzy_barrier()
            with refused(spcomm.MismatchError, "has left gather(root=0)"):
                comm.coordinated_send(1, 0)
            comm.send("interrupted", 1, tag=2)
    got = comm.gather(arrays[comm.rank] if comm.rank == 2 else None)
    assert same(got, arrays if comm.rank == 0 else None)
    assert comm.allgather(comm.rank) == list(range(comm.size))


@pytest.mark.sizes(2, 3)
@pytest.mark.options("default", "tiny")
def test_a_handler_that_runs_meanwhile(comm):
    """It may send and receive, but not begin another collective within this one."""
    seen = []

    @comm.handler(tag=870_041)
    def handle(message):
        with refused(spcomm.SpcommError, "another"):
            comm.allgather("inside")
        seen.append(message.data)
        comm.send("handled", message.source, tag=870_042)

    if comm.rank != 0:
        comm.send(comm.rank, 0, tag=870_041)
        assert comm.recv(0, tag=870_042) == "handled"
    got = comm.allgather(np.full(20_000, comm.rank))
    assert same(got, [np.full(20_000, rank) for rank in range(comm.size)])
    assert sorted(seen) == ([*range(1, comm.size)] if comm.rank == 0 else [])


@pytest.mark.sizes(2, 3)
def test_another_thread_is_refused(comm):
    """One inside, waiting for the others: a second call of this node is refused, and disturbs nothing."""
    if comm.rank == 0:
        inside = threading.Thread(target=lambda: results.append(comm.allgather(np.full(20_000, 0))))
        results = []
        inside.start()
        watcher = when_asleep(lambda: None, inside.native_id)
        watcher.join()
        with refused(spcomm.SpcommError, "another thread"):
            comm.gather(1)
        comm.send("now", spcomm.OTHERS)
        inside.join()
        got = results[0]
    else:
        comm.recv(0)
        got = comm.allgather(np.full(20_000, comm.rank))
    assert same(got, [np.full(20_000, rank) for rank in range(comm.size)])


def test_messages_are_sent_and_received_by_other_threads_meanwhile(comm):
    following, previous = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size

    def chat():
        for number in range(50):
            comm.send(np.full(number * 100, number), following)
            assert comm.recv(previous)[:1].tolist() in ([], [number])

    other = threading.Thread(target=chat)
    other.start()
    for number in range(50):
        assert same(comm.allgather(np.full(number * 50, comm.rank)),
                    [np.full(number * 50, rank) for rank in range(comm.size)])  # fmt: skip
    other.join()
