# SPDX-License-Identifier: MIT
"""Sends that wait for their receiver."""

import threading

import numpy as np
import pytest

import spcomm
from nodetools import refused


def partner_of(comm):
    """Nodes in pairs; the last of an odd number has nobody."""
    partner = comm.rank ^ 1
    return partner if partner < comm.size else None


@pytest.mark.smoke
@pytest.mark.parametrize("length", [0, 3, 200, 5_000, 300_000])
def test_returns_after_the_receive_has_begun(comm, length):
    """The receiver says first that it is about to receive: a sender that does not wait would not find that."""
    partner = partner_of(comm)
    if partner is None:
        return
    if comm.rank % 2 == 0:
        assert comm.ssend(np.arange(length), partner, tag=1) is None
        assert comm.try_recv_message(partner, 2) is not None
    else:
        comm.poll()
        comm.send("now", partner, tag=2)
        assert len(comm.recv(partner, 1)) == length


@pytest.mark.sizes(2, 3, 4, 8)
def test_waits_for_the_very_message(comm):
    """Others that were sent before and after are taken first."""
    if comm.rank == 0:
        comm.send("before", 1, tag=1)
        comm.ssend("this", 1, tag=2)
        assert comm.try_recv_message(1, 9).data == "first the others"
    elif comm.rank == 1:
        assert comm.recv(0, 1) == "before"
        comm.send("first the others", 0, tag=9)
        assert comm.recv(0, 2) == "this"


@pytest.mark.sizes(2, 3, 4, 8)
def test_a_timeout_leaves_it_sent(comm):
    if comm.rank == 0:
        with pytest.raises(spcomm.WaitTimeoutError, match="it has been sent, and may still be received"):
            comm.ssend("late", 1, tag=1, timeout=0)
        comm.send("go", 1, tag=2)
    elif comm.rank == 1:
        assert comm.recv(0, 2) == "go"
        assert comm.recv(0, 1) == "late"


def test_to_itself(comm):
    with refused(spcomm.RankError, "no other thread", "use send"):
        comm.ssend(1, comm.rank)
    assert comm.try_recv_message() is None


def test_to_itself_when_another_thread_receives(comm):
    found = []
    thread = threading.Thread(target=lambda: found.append(comm.recv(comm.rank, 4)))
    thread.start()
    comm.ssend("x", comm.rank, tag=4)
    thread.join()
    assert found == ["x"]


def test_to_nobody(comm):
    assert comm.ssend("x", spcomm.PROC_NULL) is None


@pytest.mark.parametrize("dest", [[0], spcomm.ALL, spcomm.OTHERS, spcomm.Destination([0])], ids=str)
def test_to_several(comm, dest):
    with refused(TypeError, "to one node", "use send"):
        comm.ssend("x", dest)
    assert comm.try_recv_message() is None


def test_wrong_arguments(comm):
    if comm.size > 1:
        with refused(TypeError, "cannot be pickled"):
            comm.ssend(lambda: 0, (comm.rank + 1) % comm.size)
    assert comm.try_recv_message() is None
