# SPDX-License-Identifier: MIT
"""Every feature of the system that spcomm has a fallback for, switched off once, for the same work.

(A sample of all tests runs with all of them switched off: `nothing` in nodepool.py.)
"""

import os

import numpy as np
import pytest

import spcomm
from nodetools import neighbours, when_asleep, workers

FALLBACKS = ["no-memfd", "no-futex", "no-pidfd", "no-epoll", "no-wipe_on_fork", "nothing"]
pytestmark = [pytest.mark.options(*FALLBACKS), pytest.mark.sizes(2, 4)]


def test_messages_of_all_sizes(comm):
    following, previous = neighbours(comm)
    for length in (0, 40, 41, 5000, 9000, 100_000, 3_000_000):
        comm.send(np.full(length, comm.rank, dtype="u1"), following)
        comm.send(bytes(length), spcomm.ALL, tag=1)
        assert (comm.recv(previous, 0) == previous).all()
        for source in range(comm.size):
            assert comm.recv(source, 1) == bytes(length)


def test_collectives(comm):
    for step in range(200):
        comm.barrier()
        assert comm.global_sum(step) == step * comm.size
        with comm.fuzzy_barrier():
            assert (comm.global_max(np.arange(2000) + comm.rank) == np.arange(2000) + comm.size - 1).all()


def test_waking_those_who_sleep(comm):
    following, previous = neighbours(comm)
    for step in range(10):
        watcher = when_asleep(lambda step=step: comm.send(step, following))
        assert comm.recv(previous) == step
        watcher.join()
    comm.barrier()


def test_threads(comm):
    following, previous = neighbours(comm)

    def talk(tag):
        for step in range(20):
            comm.send((tag, step), following, tag)
            assert comm.recv(previous, tag) == (tag, step)

    workers(*(lambda tag=tag: talk(tag) for tag in range(3)))


def test_timeouts(comm):
    for timeout in (0, 0.001, 0.01):
        with pytest.raises(spcomm.WaitTimeoutError):
            comm.recv(timeout=timeout)
    comm.barrier()


def test_forks(comm):
    """The child's calls raise, with and without the page that a fork wipes."""
    child = os.fork()
    if child == 0:
        try:
            comm.barrier()
        except spcomm.SpcommError as error:
            os._exit(3 if "fork" in str(error) else 4)
        except BaseException:
            os._exit(5)
        os._exit(6)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    comm.barrier()


def test_the_nodes_know_what_is_switched_off(comm):
    from spcomm._core import segments

    text = os.environ.get("SPCOMM_DISABLE", "")
    assert text
    features = segments.features(segments.disable_mask(text))
    assert not any(features[name] for name in text.split(","))
