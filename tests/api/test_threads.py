# SPDX-License-Identifier: MIT
"""Any thread of a node may call, at the same time as others."""

import threading

import numpy as np
import pytest

import spcomm
from nodetools import neighbours, state, when_asleep, workers

ROUNDS = 60


@pytest.mark.smoke
def test_threads_exchange_at_once(comm):
    """Each thread has its tag, and talks with the thread of the same tag on the next node."""
    following, previous = neighbours(comm)

    def talk(tag):
        for step in range(ROUNDS):
            value = (tag, step, bytes(37 * step * tag))
            comm.send(value, following, tag)
            assert comm.recv(previous, tag) == value

    workers(*(lambda tag=tag: talk(tag) for tag in range(1, 6)))


def test_a_waiting_thread_does_not_block_a_sending_one(comm):
    """One thread of each node waits for a message; only then the main thread sends it."""
    following, previous = neighbours(comm)
    started = threading.Event()
    identity, got = [], []

    def wait():
        identity.append(threading.get_native_id())
        started.set()
        got.append(comm.recv(previous, tag=1))

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait()
    when_asleep(lambda: None, identity[0]).join()
    comm.send(1, comm.rank, tag=2)
    assert comm.recv(comm.rank, tag=2) == 1
    comm.send("through", following, tag=1)
    thread.join()
    assert got == ["through"]


def test_a_waiting_thread_does_not_block_a_collective(comm):
    following, previous = neighbours(comm)
    got = []
    thread = threading.Thread(target=lambda: got.append(comm.recv(previous, tag=1)))
    thread.start()
    for _ in range(50):
        comm.barrier()
        assert comm.global_sum(1) == comm.size
    comm.send("x", following, tag=1)
    thread.join()
    assert got == ["x"]


def test_one_thread_takes_each_message(comm):
    """Threads that all ask for the same: each message goes to exactly one of them."""
    following, _ = neighbours(comm)
    count, taken, lock = 400, [], threading.Lock()

    def consume():
        while (number := comm.recv(tag=5)) is not None:
            with lock:
                taken.append(number)
        comm.send(None, comm.rank, tag=5)  # for the next thread

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(count):
        comm.send(number, following, tag=5)
    comm.send(None, following, tag=5)
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(count))
    assert comm.recv(comm.rank, tag=5) is None


@pytest.mark.sizes(2, 3, 4)
def test_two_collectives_at_once_are_refused(comm):
    """While the main thread waits in a barrier, another thread's collective raises; the barrier is not hurt."""
    if comm.rank == 0:
        main, entered, refusals = threading.get_native_id(), threading.Event(), []

        def interfere():
            entered.wait()
            while not refusals:
                if state(main) == "S":
                    try:
                        comm.barrier(timeout=0)
                    except spcomm.WaitTimeoutError:
                        pass  # before the main thread's, which goes on with the same barrier
                    except spcomm.SpcommError as error:
                        refusals.append(str(error))
            for other in range(1, comm.size):
                comm.send("now", other)

        thread = threading.Thread(target=interfere)
        thread.start()
        entered.set()
        barrier_beside_others(comm)
        thread.join()
        assert "thread" in refusals[0]
    else:
        assert comm.recv(0) == "now"
        comm.barrier()
    assert comm.global_sum(1) == comm.size


def barrier_beside_others(comm):
    """The other thread may have been first: then this one is refused, and comes again."""
    while True:
        try:
            return comm.barrier()
        except spcomm.WaitTimeoutError:
            raise
        except spcomm.SpcommError as error:
            assert "thread" in str(error)


def test_poll_and_try_beside_waiting_threads(comm):
    following, previous = neighbours(comm)
    results = []

    def wait():
        results.append([comm.recv(previous, tag=1) for _ in range(ROUNDS)])

    def polls():
        found = 0
        while found < ROUNDS:
            comm.poll()
            message = comm.try_recv_message(previous, tag=2)
            found += message is not None

    def sends():
        for step in range(ROUNDS):
            comm.send((step, bytes(500)), following, tag=1)
            comm.send(step, following, tag=2)

    workers(wait, polls, sends)
    assert [step for step, _ in results[0]] == list(range(ROUNDS))


def test_views_may_die_in_any_thread(comm):
    following, previous = neighbours(comm)
    for step in range(20):
        comm.send(np.full(50_000, step), following)
        holder = [comm.recv(previous)]
        assert holder[0][-1] == step
        thread = threading.Thread(target=holder.clear)
        thread.start()
        thread.join()
