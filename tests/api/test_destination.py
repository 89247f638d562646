# SPDX-License-Identifier: MIT
"""Sending to a Destination."""

import random

import pytest

import spcomm
from nodetools import neighbours, refused
from spcomm import Destination


def test_each_node_of_it_gets_the_message_once(comm):
    """Many random sets, from every node; who is in it gets it, nobody else anything."""
    chance = random.Random(5)
    sets = [
        [chance.sample(range(comm.size), chance.randrange(comm.size + 1)) for _ in range(comm.size)]
        for _ in range(30)
    ]
    for step, of_all in enumerate(sets):
        comm.send((step, comm.rank), Destination(of_all[comm.rank]), tag=step)
    comm.barrier()
    for step, of_all in enumerate(sets):
        for source, ranks in enumerate(of_all):
            if comm.rank in ranks:
                assert comm.recv(source, step) == (step, source)
    assert comm.try_recv_message() is None


@pytest.mark.smoke
def test_it_may_be_changed_and_used_again(comm):
    following, previous = neighbours(comm)
    to = Destination()
    to.set(following)
    comm.send("once", to)
    to.reset(following)
    comm.send("never", to)
    to.add(comm.rank)
    comm.send("myself", to, tag=1)
    assert comm.recv(previous, 0) == "once"
    assert comm.recv(comm.rank, 1) == "myself"
    comm.barrier()
    assert comm.try_recv_message() is None


def test_sending_does_not_move_an_iteration(comm):
    everyone = Destination(range(comm.size))
    assert everyone.first() == 0
    comm.send(None, everyone)
    assert everyone.next() == (1 if comm.size > 1 else None)
    for source in range(comm.size):
        comm.recv(source)


class Near(Destination):
    pass


def test_a_subclass_and_sendrecv(comm):
    following, previous = neighbours(comm)
    comm.send("near", Near([following]))
    assert comm.recv(previous) == "near"
    assert comm.sendrecv(comm.rank, Destination([following]), previous) == previous


def test_ranks_beyond_the_run(comm):
    """Named, with the limits; nothing is sent, not to the others either."""
    for beyond in (comm.size, 1023):
        with refused(spcomm.RankError, f"send(dest={beyond}): there is no node {beyond}", "run"):
            comm.send("x", Destination([0, beyond]))
    with refused(spcomm.RankError, f"there is no node {comm.size}"):
        comm.send("x", Destination(range(1024)))
    comm.barrier()
    assert comm.try_recv_message() is None


def test_it_travels_itself(comm):
    following, previous = neighbours(comm)
    comm.send(Destination([comm.rank, 1000]), following)
    arrived = comm.recv(previous)
    assert type(arrived) is Destination and arrived == {previous, 1000}
