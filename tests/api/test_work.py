# SPDX-License-Identifier: MIT
"""comm.work: what a cost may be, and that an interruption ends it."""

import os
import signal
import threading
from fractions import Fraction

import numpy as np
import pytest


@pytest.mark.parametrize(
    "cost", [0, 0.0, 1, 0.25, np.float32(0.5), np.int64(1), np.float64(0), np.array(1.0), Fraction(1, 2)]
)
def test_costs(comm, cost):
    assert comm.work(cost) is None
    comm.barrier()


NO_COSTS = [-1, -0.001, float("nan"), float("inf"), True, False, np.bool_(True), "3", b"3", None, 1j, [1]]


@pytest.mark.parametrize("cost", [*NO_COSTS, np.ones(2), 10**400], ids=lambda cost: repr(cost)[:20])
def test_what_is_no_cost(comm, cost):
    with pytest.raises(
        ValueError, match=r"^work\(.*\): a cost is a finite number of units, 0 or more, as in comm"
    ):
        comm.work(cost)


def test_ctrl_c_ends_it(comm):
    """It would take months."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
            comm.work(1e10)
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_run(comm):
    """The other one ends this one's work, which could not end by itself."""

    class Enough(Exception):
        pass

    def stop(*_arguments):
        raise Enough

    before = signal.signal(signal.SIGUSR1, stop)
    counted = []

    def count():
        counted.extend(range(1000))
        os.kill(os.getpid(), signal.SIGUSR1)

    other = threading.Thread(target=count)
    try:
        with pytest.raises(Enough):
            other.start()
            comm.work(1e300)
    finally:
        other.join()
        signal.signal(signal.SIGUSR1, before)
    assert len(counted) == 1000
