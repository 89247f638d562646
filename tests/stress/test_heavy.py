# SPDX-License-Identifier: MIT
"""Heavy traffic: very large messages, very many, and receivers that do not receive.

What is full here: a mailbox row (messages of a few bytes), a ring (hundreds of bytes), an arena, and behind them the
sender's private queue up to --queue-limit, and the receiver's queues. Order is kept, nothing is lost, memory stays
bounded, and other receivers notice nothing.
"""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import spcomm
from nodetools import same
from spcomm._core.comm import limits

MB100 = 100_000_000
MILLION = 1_000_000
DATA, GO = 1, 2
SLACK = 4 << 20  # what a process may grow by for reasons of its own
LENGTHS = [8, 600, 9_000, 30_000]  # in the row, in the ring, in the arena or in few parts or many


def resident():
    """Bytes of this process that are in memory and its own: shared memory does not count."""
    text = Path("/proc/self/status").read_text() if os.path.exists("/proc/self/status") else ""
    found = re.search(r"RssAnon:\s+(\d+) kB", text)
    return int(found.group(1)) * 1024 if found else 0


def bound(comm, queues=1):
    """Bytes that may be under way to one node: row, ring, arena, and so many queues."""
    config = limits(comm)
    shared = config["slots"] * 64 + config["ring_bytes"] + config["arena_bytes"]
    return shared + queues * config["queue_limit_bytes"]


def contents(number, length):
    return number.to_bytes(8, "little") + bytes([number % 251]) * (length - 8)


def fill(comm, dest, length, give_up=1):
    """Sends without waiting until so many sends in a row were refused; how many messages were accepted."""
    accepted = refused = 0
    while refused < give_up:
        assert accepted * length < 64 << 20, "nothing bounds the memory"
        try:
            comm.send(contents(accepted, length), dest, DATA, timeout=0)
            accepted, refused = accepted + 1, 0
        except spcomm.WaitTimeoutError:
            refused += 1
            os.sched_yield()
    return accepted


def fill_rest(comm, dest, length, accepted):
    """Sends a hundred more, for which there is no room yet, and says how many messages that were in all."""
    for number in range(accepted, accepted + 100):
        comm.send(contents(number, length), dest, DATA)
    comm.send(accepted + 100, dest, GO)


def receive_all(comm, source, length):
    """Each message once, in order, up to the one that says how many they were."""
    number = 0
    while (message := comm.recv_message(source)).tag == DATA:
        assert message.data == contents(number, length), number
        number += 1
    assert message.data == number


def stopped(path):
    """Does nothing at all until another node calls `resume`: not even receive in passing."""
    path.read_text()


def resume(path):
    path.write_text("")


def converse(comm, one, other):
    """Messages of every size to and fro, between two of the nodes."""
    for length in [8, 40, 500, 8_000, 20_000, 100_000] * 3:
        if comm.rank == one:
            comm.send(contents(length, length), other)
            assert comm.recv(other) == contents(length, length)
        elif comm.rank == other:
            comm.send(comm.recv(one), one)


# ---- large, and many


@pytest.mark.stress
@pytest.mark.sizes(2, 3)
@pytest.mark.options("default", "bounded")
def test_100_mb_to_all_others(comm):
    """In one block of the arena, or in thousands of parts; what was sent before and after stays there."""
    if comm.rank == 0:
        comm.send("before", spcomm.OTHERS, 1)
        comm.send(np.arange(MB100 // 8), spcomm.OTHERS, 2)
        comm.send("after", spcomm.OTHERS, 1)
    else:
        first, second, third = (comm.recv_message(0) for _ in range(3))
        assert (first.data, second.tag, third.data) == ("before", 2, "after")
        assert same(second.data, np.arange(MB100 // 8))
        assert second.data.flags.writeable


@pytest.mark.stress
@pytest.mark.sizes(2)
@pytest.mark.options("default", "bounded")
def test_100_mb_both_ways_at_once(comm):
    """Neither receives before it has sent; bytes, not an array, one way."""
    other = 1 - comm.rank
    comm.send(bytes(MB100) if comm.rank else np.full(MB100, 7, "u1"), other)
    received = comm.recv(other)
    if comm.rank == 0:
        assert received == bytes(MB100)
    else:
        assert same(received, np.full(MB100, 7, "u1"))


@pytest.mark.stress
@pytest.mark.sizes(2)
@pytest.mark.options("default", "bounded")
def test_a_million_messages(comm):
    """While one sends the other receives: each once, in order."""
    if comm.rank == 0:
        for number in range(MILLION):
            comm.send(number, 1)
    else:
        for number in range(MILLION):
            if comm.recv(0) != number:
                raise AssertionError(f"message {number} is missing or out of order")


@pytest.mark.stress
@pytest.mark.sizes(4)
@pytest.mark.options("default")
def test_a_million_messages_among_all(comm):
    """All are sent before anybody receives: most wait in queues."""
    each = MILLION // (comm.size * (comm.size - 1))
    for number in range(each):
        comm.send(number, spcomm.OTHERS)
    heard = [0] * comm.size
    for _ in range(each * (comm.size - 1)):
        message = comm.recv_message()
        assert message.data == heard[message.source]
        heard[message.source] += 1
    assert heard == [each * (rank != comm.rank) for rank in range(comm.size)]


# ---- a receiver that does not receive


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.sizes(2, 4)
@pytest.mark.options("narrow", "bounded", "bounded-arena")
@pytest.mark.slow
def test_a_stopped_receiver(comm, length, tmp_path):
    """Everything to it fills up; the sender is told so, its memory stays bounded, and others are served as ever."""
    last, path = comm.size - 1, tmp_path / "resume"
    if comm.rank == 0:
        os.mkfifo(path)
    comm.barrier()
    if comm.rank == last:
        stopped(path)
        receive_all(comm, 0, length)
        return
    if comm.rank == 0:
        before = resident()
        accepted = fill(comm, last, length, give_up=500)
        assert 0 < accepted <= bound(comm) // length + 1
        assert resident() - before <= 2 * limits(comm)["queue_limit_bytes"] + SLACK
    for other in range(1, last):
        converse(comm, 0, other)
    if last > 2:
        converse(comm, 1, 2)
    if comm.rank == 0:
        resume(path)
        fill_rest(comm, last, length, accepted)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.sizes(3, 4)
@pytest.mark.options("narrow", "bounded", "bounded-arena")
def test_a_receiver_that_waits_for_something_else(comm, length):
    """Its own queues fill up, too, until it takes no more from this sender; from others it does."""
    last = comm.size - 1
    if comm.rank == 0:
        accepted = fill(comm, last, length, give_up=2000)
        assert accepted <= bound(comm, queues=2) // length + 2
        comm.send(None, 1, GO)
        fill_rest(comm, last, length, accepted)
    elif comm.rank == 1:
        comm.recv(0, GO)
        converse(comm, 1, last)
        comm.send(None, last, GO)
    elif comm.rank == last:
        before = resident()
        converse(comm, 1, last)
        comm.recv(1, GO)
        assert resident() - before <= 2 * limits(comm)["queue_limit_bytes"] + SLACK
        receive_all(comm, 0, length)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.sizes(3)
@pytest.mark.options("narrow", "bounded")
def test_a_broadcast_to_a_stopped_receiver(comm, length, tmp_path):
    """The other receiver gets all that was accepted, while one has none of it."""
    path = tmp_path / "resume"
    if comm.rank == 0:
        os.mkfifo(path)
    comm.barrier()
    if comm.rank == 0:
        accepted = fill(comm, [1, 2], length)
        assert accepted <= bound(comm) // length + 2
        comm.send(accepted, 1, GO)
        assert comm.recv(1) == "all"
        resume(path)
        comm.send(accepted, 2, GO)
    elif comm.rank == 1:
        receive_all(comm, 0, length)
        comm.send("all", 0)
    else:
        stopped(path)
        receive_all(comm, 0, length)
