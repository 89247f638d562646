# SPDX-License-Identifier: MIT
"""Messages of one sender never overtake each other, whatever their size, tag and way; nobody starves."""

import random

import pytest

import spcomm
from nodetools import neighbours

# Inline, ring, arena (or parts), and what must be queued in between.
MIXED = [0, 8, 40, 41, 500, 1024, 5000, 8192, 8193, 20_000, 100_000, 300_000]


def payload(length, number):
    return bytes([number % 251]) * length


def schedule(seed, count):
    """(number, tag, length), the same on every node."""
    chance = random.Random(seed)
    return [(number, chance.choice([0, 1, 2, 2**31 - 1]), chance.choice(MIXED)) for number in range(count)]


def test_one_sender_by_tag(comm):
    """By tag, the order within each tag; what is passed over waits."""
    following, previous = neighbours(comm)
    sent = schedule(2, 50)
    for number, tag, length in sent:
        comm.send(payload(length, number), following, tag)
    for wanted in (2**31 - 1, 1, 0, 2):
        for number, tag, length in sent:
            if tag == wanted:
                assert comm.recv(previous, wanted) == payload(length, number)


@pytest.mark.smoke
def test_many_senders_from_any(comm):
    """From ANY, each sender's messages in its own order."""
    count = 30
    for number, tag, length in schedule(comm.rank, count):
        comm.send((number, payload(length, number)), spcomm.ALL, tag)
    heard = [0] * comm.size
    plans = [schedule(rank, count) for rank in range(comm.size)]
    for _ in range(count * comm.size):
        message = comm.recv_message()
        number, tag, length = plans[message.source][heard[message.source]]
        assert (message.data[0], message.tag) == (number, tag)
        assert message.data[1] == payload(length, number)
        heard[message.source] += 1
    assert heard == [count] * comm.size


@pytest.mark.smoke
def test_multicasts_keep_their_place(comm):
    """Messages to one and to all, mixed, arrive in the order of the sends."""
    following, previous = neighbours(comm)
    for number in range(40):
        length = MIXED[number % len(MIXED)]
        if number % 3 == 0:
            comm.send((number, payload(length, number)), spcomm.ALL)
        elif number % 3 == 1:
            comm.send((number, payload(length, number)), following)
        else:
            comm.send((number, payload(length, number)), [following, comm.rank] if comm.size > 1 else [0])
    for source in range(comm.size):
        own, mine = source == comm.rank, source == previous
        expected = [
            number for number in range(40)
            if number % 3 == 0 or (number % 3 == 1 and mine) or (number % 3 == 2 and (mine or own))
        ]  # fmt: skip
        for number in expected:
            assert comm.recv(source) == (number, payload(MIXED[number % len(MIXED)], number))


@pytest.mark.parametrize("length", [0, 8, 3000, 20_000])
def test_far_more_than_fits(comm, length):
    """Everybody sends before anybody receives: what has no room waits privately, and send does not."""
    count = 2000 if length < 100 else 150
    following, previous = neighbours(comm)
    for number in range(count):
        comm.send(payload(length, number) if length else number, following)
    for number in range(count):
        assert comm.recv(previous) == (payload(length, number) if length else number)


@pytest.mark.options("bounded")
@pytest.mark.sizes(3, 4, 8)
def test_nobody_starves_while_others_go_on(comm):
    """Nodes send for ever until node 0 has heard every one of them; what waits to be sent is bounded."""
    if comm.rank == 0:
        heard = set()
        while heard != set(range(1, comm.size)):
            heard.add(comm.recv_message(tag=1).source)
        comm.send("enough", spcomm.OTHERS, tag=2)
        finished = 0
        while finished < comm.size - 1:
            finished += comm.recv() == "last"
    else:
        while comm.try_recv_message(0, 2) is None:
            comm.send("more", 0, tag=1)
        comm.send("last", 0, tag=3)


@pytest.mark.options("narrow")
@pytest.mark.sizes(2, 3, 4)
def test_at_the_queue_limit_send_waits_and_goes_on_receiving(comm):
    """Two nodes send each other far more than slots, rings and queues hold: both wait in send, and both drain."""
    following, previous = neighbours(comm)
    rounds, length = 40, 900

    def receive(number):
        assert comm.recv(previous) == payload(length, number)

    for number in range(rounds):
        comm.send(payload(length, number), following)
        if number >= 4:  # stays far below what may lie in queues, so that nobody waits for ever
            receive(number - 4)
    for number in range(rounds - 4, rounds):
        receive(number)


@pytest.mark.options("narrow")
@pytest.mark.sizes(2, 3)
def test_a_send_that_finds_no_room_times_out_and_has_done_nothing(comm):
    """Node 1 does not receive: node 0's queue fills up to its limit, and then send gives up, whole."""
    if comm.rank == 0:
        sent = 0
        with pytest.raises(spcomm.WaitTimeoutError) as caught:
            while sent < 10_000:
                comm.send((sent, bytes(500)), 1, timeout=0.05)
                sent += 1
        assert "1" in str(caught.value) and "queue" in str(caught.value)
        comm.send(("total", sent), 2 % comm.size, tag=9) if comm.size > 2 else None
        # Others can still be reached: the limit is about memory, so make room first.
        comm.barrier()
        comm.send("end", 1, tag=1)
    elif comm.rank == 1:
        # Entering the barrier drains, but only up to the inbox limit.
        comm.barrier()
        expected = 0
        while (message := comm.recv_message(0)).tag != 1:
            assert message.data == (expected, bytes(500))
            expected += 1
        assert expected > 10
    else:
        assert comm.recv(0, 9)[0] == "total"
        comm.barrier()
