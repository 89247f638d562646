# SPDX-License-Identifier: MIT
"""Signals reach a node that waits: Python's handlers run, what they raise comes out, and nothing is lost."""

import contextlib
import os
import signal

import pytest

import spcomm
from nodetools import neighbours, when_asleep
from operations import OPERATIONS, call, waiting


@contextlib.contextmanager
def handler(number, function):
    before = signal.signal(number, function)
    try:
        yield
    finally:
        signal.signal(number, before)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


RECEIVES = {
    name: operation
    for name, operation in waiting("peer").items()
    if operation.method in ("recv", "recv_message", "probe")
}


@pytest.mark.parametrize("name", RECEIVES)
def test_ctrl_c_ends_a_wait(comm, name):
    with handler(signal.SIGINT, signal.default_int_handler):
        with pytest.raises(KeyboardInterrupt):
            watcher = when_asleep(interrupt)
            call(comm, RECEIVES[name], own=comm.rank, peer=comm.rank)
        watcher.join()
    comm.send("later", comm.rank, 11)
    assert comm.recv(comm.rank, 11) == "later"


@pytest.mark.sizes(2, 3, 4)
@pytest.mark.parametrize("name", [name for name in waiting("all") if name not in ("fuzzy_barrier", "split")])
def test_ctrl_c_ends_a_collective_which_is_then_resumed(comm, name):
    operation = OPERATIONS[name]
    if comm.rank == 0:
        with handler(signal.SIGINT, signal.default_int_handler):
            with pytest.raises(KeyboardInterrupt):
                watcher = when_asleep(interrupt)
                call(comm, operation, own=0, peer=1)
            watcher.join()
        comm.send("now", spcomm.OTHERS)
    else:
        assert comm.recv(0) == "now"
    call(comm, operation, own=0, peer=1)
    comm.barrier()


@pytest.mark.sizes(2, 3, 4)
def test_ctrl_c_ends_the_wait_of_a_fuzzy_barrier_which_is_then_resumed(comm):
    fuzzy = comm.fuzzy_barrier() if comm.rank == 0 else None
    if comm.rank == 0:
        with handler(signal.SIGINT, signal.default_int_handler):
            with pytest.raises(KeyboardInterrupt):
                watcher = when_asleep(interrupt)
                fuzzy.wait()
            watcher.join()
        comm.send("now", spcomm.OTHERS)
    else:
        assert comm.recv(0) == "now"
        fuzzy = comm.fuzzy_barrier()
    fuzzy.wait()
    comm.barrier()


def test_a_handler_runs_and_the_wait_goes_on(comm):
    """A handler that returns does not end the wait; it may even send what is waited for."""
    following, previous = neighbours(comm)
    calls = []

    def handle(number, frame):
        calls.append(number)
        comm.send("from the handler", following, tag=4)

    with handler(signal.SIGUSR2, handle):
        watcher = when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR2))
        assert comm.recv(previous, tag=4) == "from the handler"
        watcher.join()
        while not calls:  # the message may come before this node's own signal
            pass
    assert calls == [signal.SIGUSR2]
    comm.barrier()


class Alarm(Exception):
    pass


def test_what_a_handler_raises_comes_out(comm):
    def handle(number, frame):
        raise Alarm

    with handler(signal.SIGALRM, handle):
        with pytest.raises(Alarm):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            comm.recv(comm.rank, tag=3)
    comm.send(1, comm.rank, tag=3)
    assert comm.recv(comm.rank, tag=3) == 1


@pytest.mark.smoke
def test_signals_while_exchanging(comm):
    """Hundreds of signals between, before and inside calls: no message is lost, doubled or mixed up."""
    following, previous = neighbours(comm)
    count = 0

    def handle(number, frame):
        nonlocal count
        count += 1

    with handler(signal.SIGALRM, handle):
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        try:
            for step in range(100):
                comm.send((step, bytes(step * 150)), following)
                assert comm.recv(previous) == (step, bytes(step * 150))
                if step % 10 == 0:
                    comm.barrier()
                    assert comm.global_sum(step) == step * comm.size
            while count < 5:  # however fast that was
                comm.poll()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    comm.barrier()


def test_interrupted_again_and_again(comm):
    """Exceptions out of waits at random points; each message still arrives once and whole."""
    following, previous = neighbours(comm)
    armed = False

    def handle(number, frame):
        if armed:  # another thread may have taken the signal, and tell of it after the timer's end
            raise Alarm

    received = []
    with handler(signal.SIGALRM, handle):
        for step in range(100):
            comm.send((step, bytes(step * 500)), following)
            while len(received) == step:
                try:
                    armed = True
                    signal.setitimer(signal.ITIMER_REAL, 0.0005)
                    comm.probe(previous)  # may be interrupted as often as it likes
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    armed = False
                except Alarm:
                    continue
                received.append(comm.recv(previous))
    assert received == [(step, bytes(step * 500)) for step in range(100)]


@pytest.mark.options("narrow")
@pytest.mark.sizes(2)
def test_ctrl_c_ends_a_send_that_waits_for_room(comm):
    """Node 1 does not receive until node 0 was interrupted in send; what was sent is all there."""
    if comm.rank == 0:
        sent = 0
        with handler(signal.SIGINT, signal.default_int_handler), pytest.raises(KeyboardInterrupt):
            with contextlib.suppress(spcomm.WaitTimeoutError):
                while True:
                    comm.send((sent, bytes(400)), 1, timeout=0.05)
                    sent += 1
            watcher = when_asleep(interrupt)
            comm.send((sent, bytes(400)), 1)
            sent += 1  # there was room after all: then it is the join that ends
            watcher.join()
        comm.barrier()
        comm.send(("end", sent), 1)
    else:
        comm.barrier()
        expected = 0
        while (data := comm.recv(0))[0] != "end":
            assert data == (expected, bytes(400))
            expected += 1
        assert data[1] == expected > 10
