# SPDX-License-Identifier: MIT
"""Garbage collection at awkward moments; objects that die inside calls; memory that comes back."""

import gc
import sys
import weakref

import numpy as np
import pytest

from nodetools import neighbours, pass_on


class Holder:
    """Holds received arrays, and lets them go when the collector finds it in a circle."""

    def __init__(self, array, log):
        self.array = array
        self.me = self
        self.log = log

    def __del__(self):
        self.log.append(float(self.array[0]))
        self.array = None


@pytest.mark.smoke
def test_views_die_in_finalizers_during_sends(comm):
    """The collector runs at every allocation, also inside send and recv, and frees blocks there."""
    following, previous = neighbours(comm)
    log = []
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for step in range(30):
            comm.send({"a": np.full(20_000, step), "list": [[], [], {}]}, following)
            Holder(comm.recv(previous)["a"], log)
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert sorted(log) == [float(step) for step in range(30)]


def test_finalizers_may_send(comm):
    following, previous = neighbours(comm)

    class Last:
        def __del__(self):
            comm.send("last words", following, tag=9)

    for _ in range(10):
        thing = Last()
        thing.me = thing
        del thing
    gc.collect()
    assert [comm.recv(previous, tag=9) for _ in range(10)] == ["last words"] * 10


def test_nothing_received_is_kept(comm):
    """Objects that were received die when their last user lets them go."""
    array = pass_on(comm, np.arange(100_000))
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is None


def test_memory_does_not_grow(comm):
    """After a warm-up, ten thousand messages and reductions leave no blocks behind in Python's allocator."""
    following, previous = neighbours(comm)

    def work(rounds):
        for step in range(rounds):
            comm.send(step + 1000, following)
            comm.send((step, "text", 2.5), following)
            comm.send(np.arange(10), following)
            comm.send({"a": step}, following)
            for _ in range(4):
                comm.recv(previous)
            comm.try_recv_message()
            comm.global_sum((step, 0.5))

    work(100)
    gc.collect()
    before = sys.getallocatedblocks()
    work(400)
    gc.collect()
    assert sys.getallocatedblocks() - before < 200
