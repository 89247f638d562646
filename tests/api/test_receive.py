# SPDX-License-Identifier: MIT
"""recv, recv_message, try_recv_message, take_message, poll, probe and their timeouts."""

import time

import numpy as np
import pytest

import spcomm
from nodetools import neighbours, refused, when_asleep


def test_try_finds_nothing_or_the_first_match(comm):
    assert comm.try_recv_message() is None
    assert comm.try_recv_message(comm.rank, 3) is None
    for number in range(3):
        comm.send(number, comm.rank, tag=number)
    while comm.poll() < 3:  # with very few slots some of them wait to be sent
        pass
    assert comm.try_recv_message(tag=2).data == 2
    assert comm.try_recv_message(source=comm.rank).data == 0
    assert comm.try_recv_message(spcomm.ANY, spcomm.ANY) == (1, comm.rank, 1)
    assert comm.try_recv_message() is None


def test_take_sees_only_what_was_moved(comm):
    """take_message looks into the queues, poll fills them."""
    comm.barrier()
    if comm.size > 1:
        following, previous = neighbours(comm)
        comm.send("x", following, tag=6)
        comm.barrier()  # waits drain too, so it may lie in the queue already; after poll it must
        assert comm.poll() == 1
        assert comm.take_message(tag=5) is None
        message = comm.take_message(tag=6)
        assert message == ("x", previous, 6)
    assert comm.take_message() is None and comm.poll() == 0


def test_poll_counts_and_keeps(comm):
    following, previous = neighbours(comm)
    for number in range(10):
        comm.send(number, following, tag=number % 2)
    while comm.poll() < 10:
        pass
    assert comm.poll() == 10
    assert [comm.take_message(tag=1).data for _ in range(5)] == [1, 3, 5, 7, 9]
    assert comm.poll() == 5
    assert [comm.take_message().data for _ in range(5)] == [0, 2, 4, 6, 8]
    assert comm.poll() == 0
    assert previous >= 0


def test_poll_sends_what_was_queued(comm):
    """A node that only polls delivers all it has queued."""
    following, previous = neighbours(comm)
    count, got = 300, 0
    for number in range(count):
        comm.send((number, bytes(3000)), following)
    while got < count:
        comm.poll()
        while (message := comm.take_message()) is not None:
            assert message.data[0] == got and message.source == previous
            got += 1
    comm.barrier()


@pytest.mark.smoke
def test_probe_leaves_the_message(comm):
    following, previous = neighbours(comm)
    comm.send(np.arange(5), following, tag=8)
    comm.send("second", following, tag=9)
    seen = comm.probe()
    assert isinstance(seen, spcomm.Message) and seen == (None, previous, 8)
    assert comm.probe(previous, 9) == (None, previous, 9)
    assert comm.probe(tag=8) == (None, previous, 8)
    assert comm.recv(seen.source, seen.tag).tolist() == [0, 1, 2, 3, 4]
    assert comm.probe() == (None, previous, 9)
    assert comm.recv() == "second"
    with pytest.raises(spcomm.WaitTimeoutError):
        comm.probe(timeout=0)


@pytest.mark.parametrize("call", ["recv", "recv_message", "probe"])
def test_timeouts_say_what_was_waited_for(comm, call):
    for timeout in (0, 0.001, 0.02):
        with refused(spcomm.WaitTimeoutError, call, 17) as caught:
            getattr(comm, call)(comm.rank, 17, timeout=timeout)
        assert isinstance(caught.value, TimeoutError) and isinstance(caught.value, spcomm.SpcommError)
    with refused(spcomm.WaitTimeoutError, call):
        getattr(comm, call)(timeout=0)


@pytest.mark.smoke
def test_a_timeout_leaves_nothing_half_done(comm):
    """After receives that gave up, the message is there, whole and in its place."""
    following, previous = neighbours(comm)
    for _ in range(20):
        with pytest.raises(spcomm.WaitTimeoutError):
            comm.recv(previous, timeout=0.0001)
    comm.barrier()
    big = np.arange(50_000)
    comm.send(big, following)
    comm.send("after", following)
    out = np.zeros_like(big)
    while True:
        try:
            comm.recv(previous, out=out, timeout=0)
            break
        except spcomm.WaitTimeoutError:
            continue
    assert np.array_equal(out, big)
    assert comm.recv(previous) == "after"


def test_long_timeouts_are_fine(comm):
    for timeout in (1, 1e3, 1e9, 1e300, 10**400, float("inf"), np.float64(5), True):
        comm.send("x", comm.rank)
        assert comm.recv(timeout=timeout) == "x"


@pytest.mark.smoke
def test_a_waiting_receive_is_woken(comm):
    """The receiver sleeps when the message is sent."""
    following, previous = neighbours(comm)
    for value in (1, "text" * 100, np.ones(200_000)):
        watcher = when_asleep(lambda value=value: comm.send(value, following, tag=3))
        arrived = comm.recv(previous, 3)
        watcher.join()
        assert np.array_equal(arrived, value)


def test_time_is_monotonic_seconds(comm):
    before = time.monotonic()
    mine = comm.time()
    assert isinstance(mine, float)
    assert comm.time() >= mine
    lowest, highest = comm.global_min(mine), comm.global_max(mine)
    assert lowest <= mine <= highest
    comm.barrier()
    assert comm.time() >= highest  # one clock for all nodes of a box
    assert before <= time.monotonic()


def test_receiving_from_proc_null(comm):
    message = comm.recv_message(spcomm.PROC_NULL)
    assert message.data is None and message.source == spcomm.PROC_NULL
    assert comm.recv(spcomm.PROC_NULL, timeout=0) is None
