# SPDX-License-Identifier: MIT
"""Arrays are made, sent, moved, kept, viewed and dropped at random, for long: nothing is lost, nothing grows.

What a node writes into an array that it keeps is there as long as it keeps it. CHECK_SCALE makes it longer.
"""

import gc
import os
from collections import deque

import numpy as np
import pytest

from spcomm._core.arrays import bytes_given_out
from test_heavy import SLACK, resident

SEEDS = max(1, round(float(os.environ.get("CHECK_SCALE", "1"))))
LAPS = 3
ROUNDS = 150  # of a lap, after which everybody has dropped everything
KEPT_MAX = 20


class Keeper:
    """Arrays and views of them, and what must be in them."""

    def __init__(self, random):
        self.random = random
        self.kept = deque()

    def keep(self, array):
        mark = float(self.random.integers(1 << 30))
        array[...] = mark
        kinds = [
            lambda: array,
            lambda: array[len(array) // 2 :],
            lambda: memoryview(array),
            lambda: array[::2],
        ]
        self.kept.append((kinds[int(self.random.integers(4))](), mark))

    def check(self, entry):
        view, mark = entry
        assert (np.asarray(view) == mark).all()

    def drop(self):
        self.kept.rotate(int(self.random.integers(KEPT_MAX)))
        self.check(self.kept.popleft())

    def drop_all(self):
        while self.kept:
            self.check(self.kept.popleft())


def contents(data):
    """The arrays of a message."""
    if isinstance(data, dict):
        return list(data.values())
    return [data]


class Traffic:
    """The sends and receives of a node; both are counted, so that all can be received in the end."""

    def __init__(self, comm, keeper, random):
        self.comm, self.keeper, self.random = comm, keeper, random
        self.sent = self.received = 0

    def go_on(self, array):
        """To the next node, one way or another."""
        comm = self.comm
        following = (comm.rank + 1) % comm.size
        way = int(self.random.integers(4))
        if way == 0:
            comm.send(array, following)
        elif way == 1:
            comm.send({"a": array, "b": array[: len(array) // 2]}, following)
        elif way == 2:
            comm.send(array, {following, comm.rank})
            self.sent += 1
        else:
            comm.move(array, following)
        self.sent += 1

    def take(self, message):
        """Keeps some, sends some back, drops the others."""
        self.received += 1
        for one in contents(message.data):
            if message.tag == 0 and self.random.random() < 0.3:
                one[...] = 1
                self.comm.move(one, message.source, 1)
                self.sent += 1
            elif self.random.random() < 0.5:
                self.keeper.keep(one)

    def take_all(self):
        while (message := self.comm.try_recv_message()) is not None:
            self.take(message)

    def lap(self):
        for _ in range(ROUNDS):
            length = int(self.random.integers(1, 40_000 if self.random.random() < 0.1 else 4_000))
            array = self.comm.empty(length)
            array[...] = length
            if self.random.random() < 0.3:
                self.keeper.keep(array)
            else:
                self.go_on(array)
            self.take_all()
            while len(self.keeper.kept) > KEPT_MAX:
                self.keeper.drop()
        array = None
        while self.comm.global_sum(self.sent - self.received) != 0:
            self.take_all()
        self.keeper.drop_all()


@pytest.mark.sizes(2, 5)
@pytest.mark.options("default", "small")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_grows(comm, seed):
    random = np.random.default_rng([comm.rank, comm.size, seed])
    traffic = Traffic(comm, Keeper(random), random)
    gc.collect()
    comm.barrier()
    base, after_first = bytes_given_out(comm), None  # tests before this one may have left something open
    comm.barrier()
    for _ in range(LAPS):
        traffic.lap()
        gc.collect()
        comm.barrier()
        used = bytes_given_out(comm)
        comm.barrier()
        assert used <= base
        after_first = after_first or resident()
    assert resident() < after_first + SLACK
