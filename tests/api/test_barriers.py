# SPDX-License-Identifier: MIT
"""Barriers and fuzzy barriers."""

import threading

import pytest

import spcomm
from nodetools import refused


@pytest.mark.options("default", "tree")
def test_nobody_leaves_before_all_have_entered(comm):
    """Messages that everybody sent before the barrier are there after it, without waiting."""
    for step in range(60):
        comm.send(step, spcomm.ALL, tag=step)
        comm.barrier()
        for source in range(comm.size):
            assert comm.try_recv_message(source, step).data == step


@pytest.mark.smoke
def test_barriers_of_all_kinds_in_turn(comm):
    for step in range(50):
        comm.barrier()
        assert comm.global_sum(step) == step * comm.size
        with comm.fuzzy_barrier():
            pass
        comm.barrier(timeout=60)


@pytest.mark.sizes(2, 3, 4, 8)
def test_a_barrier_that_timed_out_is_resumed(comm):
    """Node 0 gives up three times, tells the others so, and then finishes the same barrier."""
    if comm.rank == 0:
        for timeout in (0, 0.001, 0.01):
            with refused(spcomm.WaitTimeoutError, "barrier"):
                comm.barrier(timeout=timeout)
        comm.send("now", spcomm.OTHERS)
    else:
        assert comm.recv(0) == "now"
    comm.barrier()
    assert comm.global_sum(1) == comm.size


@pytest.mark.sizes(2, 3, 4, 8)
def test_another_collective_after_a_timeout_is_refused(comm):
    """A barrier left by timeout stays entered: something else is a mismatch, and the barrier can still be resumed."""
    if comm.rank == 0:
        with pytest.raises(spcomm.WaitTimeoutError):
            comm.barrier(timeout=0)
        with refused(spcomm.MismatchError, "barrier", "global_sum"):
            comm.global_sum(1)
        comm.send("now", spcomm.OTHERS)
    else:
        assert comm.recv(0) == "now"
    comm.barrier()
    assert comm.global_max(comm.rank) == comm.size - 1


@pytest.mark.sizes(2, 3, 4)
def test_a_node_may_send_and_receive_while_its_barrier_is_left(comm):
    if comm.rank == 0:
        with pytest.raises(spcomm.WaitTimeoutError):
            comm.barrier(timeout=0)
        for other in range(1, comm.size):
            assert comm.sendrecv("question", other, other) == "answer"
    else:
        assert comm.recv(0) == "question"
        comm.send("answer", 0)
    comm.barrier()


def test_alone_a_barrier_takes_no_time(comm):
    if comm.size == 1:
        comm.barrier(timeout=0)
        fuzzy = comm.fuzzy_barrier()
        assert fuzzy.done()
        fuzzy.wait(timeout=0)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "soon"])
def test_bad_timeouts_of_a_fuzzy_barrier(comm, timeout):
    fuzzy = comm.fuzzy_barrier()
    with refused((ValueError, TypeError), "timeout"):
        fuzzy.wait(timeout=timeout)
    fuzzy.wait()


# ---- fuzzy barriers


def test_fuzzy_is_done_once_all_have_entered(comm):
    fuzzy = comm.fuzzy_barrier()
    assert isinstance(fuzzy, spcomm.FuzzyBarrier)
    while not fuzzy.done():
        pass
    assert fuzzy.wait() is fuzzy.wait(timeout=0) is None
    assert fuzzy.done() is True


@pytest.mark.sizes(2, 3, 4, 8)
def test_fuzzy_is_not_done_before(comm):
    if comm.rank == 0:
        assert comm.recv(1) == "entered"
        fuzzy = comm.fuzzy_barrier()
    else:
        fuzzy = comm.fuzzy_barrier()
        assert fuzzy.done() is False
        with refused(spcomm.WaitTimeoutError, "fuzzy"):
            fuzzy.wait(timeout=0)
        if comm.rank == 1:
            # Only now may node 0 enter; the other nodes' checks are ordered by this node's message to them.
            for other in range(2, comm.size):
                assert comm.recv(other) == "checked"
            comm.send("entered", 0)
        else:
            comm.send("checked", 1)
    fuzzy.wait()
    assert fuzzy.done()


@pytest.mark.smoke
@pytest.mark.sizes(2, 3, 4, 8)
def test_fuzzy_completes_while_a_node_computes(comm):
    """Node 0 enters and then calls nothing of spcomm until the others, who wait, have told it by another way."""
    import os
    import tempfile

    folder = comm_text(comm, tempfile.mkdtemp() if comm.rank == 0 else "")
    if comm.rank != 0:
        os.mkfifo(os.path.join(folder, str(comm.rank)))
    comm.barrier()
    fuzzy = comm.fuzzy_barrier()
    if comm.rank == 0:
        for other in range(1, comm.size):
            with open(os.path.join(folder, str(other))) as pipe:
                assert pipe.read() == "through"
    else:
        fuzzy.wait()
        with open(os.path.join(folder, str(comm.rank)), "w") as pipe:
            pipe.write("through")
    fuzzy.wait()
    if comm.rank == 0:
        for other in range(1, comm.size):
            os.unlink(os.path.join(folder, str(other)))
        os.rmdir(folder)


def comm_text(comm, text):
    """Node 0's text, on all nodes."""
    if comm.rank == 0:
        comm.send(text, spcomm.ALL, tag=77)
    return comm.recv(0, 77)


def test_eight_are_open_and_a_ninth_is_refused(comm):
    open_ones = [comm.fuzzy_barrier() for _ in range(8)]
    with refused(spcomm.SpcommError, "eight", "fuzzy"):
        comm.fuzzy_barrier()
    for fuzzy in open_ones:
        fuzzy.wait()
    again = comm.fuzzy_barrier()
    again.wait()


@pytest.mark.parametrize("order", ["oldest-first", "newest-first", "mixed"])
def test_ended_in_any_order(comm, order):
    for _ in range(10):
        open_ones = [comm.fuzzy_barrier() for _ in range(8)]
        if order == "newest-first":
            open_ones.reverse()
        elif order == "mixed":
            open_ones = open_ones[1::2] + open_ones[::2]
        for fuzzy in open_ones:
            fuzzy.wait()


def test_other_collectives_in_between(comm):
    """Any number of other collectives may happen between the entry of a fuzzy barrier and its end."""
    early = comm.fuzzy_barrier()
    for step in range(100):
        comm.barrier()
        assert comm.global_sum(step) == comm.size * step
        with comm.fuzzy_barrier():
            assert comm.global_max(comm.rank) == comm.size - 1
    assert early.done()
    early.wait()


def test_with_waits_at_the_end(comm):
    with comm.fuzzy_barrier() as fuzzy:
        comm.send("inside", spcomm.ALL)
    assert fuzzy.done()
    for source in range(comm.size):
        assert comm.recv(source) == "inside"


def test_with_and_an_exception_inside(comm):
    """The exception is what comes out, at once; the barrier stays open, and can be waited for."""
    for _ in range(10):
        with pytest.raises(KeyError):
            with comm.fuzzy_barrier() as fuzzy:
                raise KeyError("mine")
        fuzzy.wait()
    comm.barrier()


def test_done_from_another_thread(comm):
    fuzzy = comm.fuzzy_barrier()
    seen = []
    thread = threading.Thread(target=lambda: (fuzzy.wait(), seen.append(fuzzy.done())))
    thread.start()
    thread.join()
    assert seen == [True]


@pytest.mark.sizes(2, 3, 4, 8)
def test_a_fuzzy_wait_that_timed_out_can_be_repeated(comm):
    fuzzy = None
    if comm.rank == 0:
        for other in range(1, comm.size):
            comm.recv(other)
        fuzzy = comm.fuzzy_barrier()
    else:
        fuzzy = comm.fuzzy_barrier()
        for timeout in (0, 0.001):
            with pytest.raises(spcomm.WaitTimeoutError):
                fuzzy.wait(timeout=timeout)
        comm.send("tried", 0)
    fuzzy.wait()
    comm.barrier()
