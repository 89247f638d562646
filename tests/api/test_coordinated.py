# SPDX-License-Identifier: MIT
"""Cycles of coordinated messages."""

import threading

import numpy as np
import pytest

import spcomm
from nodetools import boxes, neighbours, refused, same


def by_source(comm):
    """All messages of the cycle, as lists by source."""
    received = {}
    for message in comm.coordinated_messages():
        assert message.tag == 0
        received.setdefault(message.source, []).append(message.data)
    return received


@pytest.mark.smoke
def test_to_one_to_many_to_all_to_nobody(comm):
    """Node s sends to its neighbour, to the even nodes, to all, to all others, to nobody, and says so to itself."""
    following, previous = neighbours(comm)
    comm.coordinated_send(("one", comm.rank), following)
    comm.coordinated_send("many", range(0, comm.size, 2))
    comm.coordinated_send("all", spcomm.ALL)
    comm.coordinated_send("others", spcomm.OTHERS)
    comm.coordinated_send("nobody", spcomm.PROC_NULL)
    comm.coordinated_send("self", comm.rank)
    received = by_source(comm)
    for source in range(comm.size):
        expected = [("one", source)] if source == previous else []
        expected += ["many"] if comm.rank % 2 == 0 else []
        expected += ["all"]
        expected += ["others"] if source != comm.rank else ["self"]
        assert received.pop(source, []) == expected
    assert received == {}


@pytest.mark.options("default", "tree")
def test_a_cycle_without_messages_waits_for_all(comm):
    """Messages that everybody sent before its first receive have arrived once the cycle is over."""
    for cycle in range(200):
        comm.send(cycle, spcomm.ALL, tag=3)
        assert comm.coordinated_recv() is None
        for source in range(comm.size):
            assert comm.try_recv_message(source, 3).data == cycle


def test_a_loop_left_early_leaves_the_cycle_open(comm):
    for value in ("first", "second", "third"):
        comm.coordinated_send(value, spcomm.ALL)
    for message in comm.coordinated_messages():
        left = {message.source: 1}
        break
    with refused(spcomm.CycleError, "barrier()", "coordinated_send() at test_coordinated.py:"):
        comm.barrier()
    loop = comm.coordinated_messages()
    for message in loop:
        assert message.data == ("first", "second", "third")[left.setdefault(message.source, 0)]
        left[message.source] += 1
    assert left == dict.fromkeys(range(comm.size), 3)
    comm.barrier()
    comm.coordinated_send("next", comm.rank)
    assert list(loop) == []  # it is through, and begins no other cycle
    assert by_source(comm) == {comm.rank: ["next"]}


def synchronising(comm):
    return {
        "barrier()": comm.barrier,
        "barrier(timeout=": lambda: comm.barrier(timeout=5),
        "fuzzy_barrier()": comm.fuzzy_barrier,
        "global_sum(": lambda: comm.global_sum(1),
        "global_min(": lambda: comm.global_min((1, 2.5)),
        "global_max(": lambda: comm.global_max(np.arange(100_000.0)),
        "split(": lambda: comm.split(0),
    }


def test_calls_that_synchronise_are_refused_and_lose_nothing(comm):
    comm.coordinated_send("kept", spcomm.ALL)
    for words, call in synchronising(comm).items():
        with refused(
            spcomm.CycleError, words, f"node {comm.rank}", "coordinated_send()", "Nothing was done or lost"
        ):
            call()
    first = comm.coordinated_recv()
    for words, call in synchronising(comm).items():
        with refused(spcomm.CycleError, words):
            call()
    rest = list(comm.coordinated_messages())
    assert sorted(m.source for m in [first, *rest]) == list(range(comm.size))
    comm.barrier()
    assert comm.global_sum(1) == comm.size


def test_a_cycle_begins_with_a_receive_too(comm):
    """Node 0 enters, and finds itself within a cycle although it has sent nothing."""
    if comm.rank == 0 and comm.size > 1:
        with refused(spcomm.WaitTimeoutError, "coordinated_recv(timeout=0)", "call it again"):
            comm.coordinated_recv(timeout=0)
        with refused(spcomm.CycleError, "barrier()", "since coordinated_recv() at test_coordinated.py:"):
            comm.barrier()
        comm.send("now", spcomm.OTHERS)
    elif comm.size > 1:
        assert comm.recv(0) == "now"
        comm.coordinated_send("late but in time", 0)
    assert by_source(comm) == {s: ["late but in time"] for s in range(1, comm.size) if comm.rank == 0}
    comm.barrier()


def test_an_older_fuzzy_barrier_may_be_asked_but_not_waited_for(comm):
    barrier = comm.fuzzy_barrier()
    comm.coordinated_send(1, comm.rank)
    assert barrier.done() in (True, False)
    if not barrier.done():
        with refused(spcomm.CycleError, "fuzzy_barrier().wait"):
            barrier.wait(timeout=5)
    assert comm.coordinated_recv().data == 1
    assert comm.coordinated_recv() is None
    assert barrier.done()  # all have entered this cycle, and before it the barrier
    barrier.wait()


@pytest.mark.sizes(2, 3, 4)
def test_a_collective_left_by_a_timeout_comes_first(comm):
    if comm.rank == 0:
        with pytest.raises(spcomm.WaitTimeoutError):
            comm.barrier(timeout=0)
        with refused(spcomm.MismatchError, "coordinated_send(dest=1)", "barrier()"):
            comm.coordinated_send("no", 1)
        with refused(spcomm.MismatchError, "coordinated_recv()", "barrier()"):
            comm.coordinated_recv()
        comm.send("now", spcomm.OTHERS)
    else:
        comm.recv(0)
    comm.barrier()
    comm.coordinated_send("yes", spcomm.ALL)
    assert by_source(comm) == {source: ["yes"] for source in range(comm.size)}


@pytest.mark.sizes(2, 3, 4)
def test_a_mismatch_keeps_the_cycle_and_its_messages(comm):
    for round in range(3):
        comm.coordinated_send(round, spcomm.OTHERS) if comm.rank != 0 else None
        if comm.rank == 0:
            with refused(spcomm.MismatchError, "barrier()", "coordinated_recv()"):
                comm.barrier()
            comm.coordinated_send(round, spcomm.OTHERS)
            received = by_source(comm)
        else:
            received = {}
            with refused(spcomm.MismatchError, f"node {comm.members[0]}: barrier()", "coordinated_recv()"):
                for message in comm.coordinated_messages():
                    received[message.source] = [message.data]
            with refused(spcomm.CycleError):
                comm.barrier()
            with refused(spcomm.CycleError):
                comm.coordinated_send("no", 0)
            received |= by_source(comm)
        assert received == {source: [round] for source in range(comm.size) if source != comm.rank}
        comm.barrier()


def test_what_is_refused_begins_no_cycle(comm):
    with pytest.raises(TypeError):
        comm.coordinated_send(threading.Lock(), comm.rank)
    comm.coordinated_messages()  # asked for nothing yet
    comm.barrier()
    with pytest.raises(TypeError):
        type(comm.coordinated_messages())()


@pytest.mark.options("default", "tree")
def test_shared_memory_without_copies(comm):
    """As recv: a large array comes writable and private, or with copy=False shared and read-only."""
    array = np.arange(50_000.0)
    comm.coordinated_send(array, spcomm.ALL)
    for message in comm.coordinated_messages():
        message.data[:] = -1
    comm.coordinated_send(array, spcomm.ALL)
    kept = [message.data for message in comm.coordinated_messages(copy=False)]
    assert all(same(data, array) for data in kept)
    shared = comm.size > 1 and boxes(comm) == 1  # a box's only node may write: nobody else has it
    assert not shared or not any(data.flags.writeable for data in kept)


@pytest.mark.sizes(1, 2, 3)
def test_other_threads_send_while_one_receives(comm):
    """A message that is too late for one cycle goes in the next; nothing is lost, whoever sends."""
    count = 150

    def sender(number):
        for i in range(count):
            while True:
                try:
                    comm.coordinated_send((number, i), spcomm.ALL)
                    break
                except spcomm.CycleError:
                    pass

    threads = [threading.Thread(target=sender, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    expected = {(source, number): 0 for source in range(comm.size) for number in range(2)}
    while sum(expected.values()) < 2 * count * comm.size:
        for message in comm.coordinated_messages():
            number, i = message.data
            assert expected[message.source, number] == i
            expected[message.source, number] += 1
    for thread in threads:
        thread.join()


@pytest.mark.sizes(2, 3)
def test_two_threads_do_not_receive_at_once(comm):
    """Node 0 waits in a receive, with one thread; another one is told so, and so is a barrier."""
    if comm.rank == 0:
        results = []

        def receive():
            while not results:
                try:
                    results.append(comm.coordinated_recv())
                except spcomm.SpcommError as error:  # the main thread was inside
                    assert "another thread" in str(error)

        thread = threading.Thread(target=receive)
        thread.start()
        refusals = 0
        while refusals == 0:  # until the thread is inside
            try:
                comm.coordinated_recv(timeout=0)
            except spcomm.WaitTimeoutError:
                pass
            except spcomm.SpcommError as error:
                assert "another thread" in str(error)
                refusals += 1
        comm.send("come", spcomm.OTHERS)
        thread.join()
        assert results == [None]
    else:
        comm.recv(0)
        assert comm.coordinated_recv() is None
