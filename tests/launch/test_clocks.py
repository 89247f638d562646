# SPDX-License-Identifier: MIT
"""The clock of another machine: the true offset always lies within the error that is stated."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spcomm.launch.remote.clocks import Clock

SECOND = 1_000_000_000


class Simulated:
    """Another machine's clock. `rates` are (from when on, in seconds of ours; rate); the first began long before."""

    def __init__(self, rates):
        self._rates = rates

    def theirs(self, ours):
        found = float(ours)
        before = 0.0
        for begin, rate in self._rates:
            if ours > begin * SECOND or not begin:
                found += (rate - before) * (ours - begin * SECOND)
            before = rate
        return round(found) - 7 * 3600 * SECOND


def measured(simulated, seconds, rng, round_trip=100_000):
    """As the launcher does it: some at the begin, then one each second, some of them slow, all of them lopsided."""
    clock = Clock()
    moments = [at * SECOND // 20 for at in range(8)]
    moments += [SECOND // 2 + at * SECOND for at in range(int(seconds - 0.5))]
    for asked in moments:
        takes = int(round_trip * rng.uniform(0.5, 1.5) * (100 if rng.random() < 0.1 else 1))
        read = asked + int(takes * rng.random())
        clock.add(asked, asked + takes, simulated.theirs(read))
    return clock


def check(clock, simulated, first, last, rng):
    """The stated error of all, and of parts, holds at every moment; returns what is stated of all."""

    def stated(begin, end):
        error = clock.error_ns(simulated.theirs(begin), simulated.theirs(end))
        for at in [begin, end, *(rng.randint(begin, end) for _ in range(50))]:
            assert abs(clock.ours(simulated.theirs(at)) - at) <= error, (at, error)
        return error

    for _ in range(5):
        stated(*sorted((rng.randint(first, last), rng.randint(first, last))))
    return stated(first, last)


@given(st.integers(0, 2**32), st.floats(-400e-6, 400e-6), st.sampled_from([0.4, 1.3, 3, 20, 130]))
def test_a_clock_that_runs_at_another_rate(seed, rate, seconds):
    rng = random.Random(seed)
    simulated = Simulated([(0, rate)])
    clock = measured(simulated, seconds, rng)
    check(clock, simulated, -SECOND // 10, int((seconds + 1) * SECOND), rng)


@given(st.integers(0, 2**32), st.lists(st.floats(-100e-6, 100e-6), min_size=2, max_size=4))
def test_rates_that_change(seed, rates):
    """Each holds for a minute."""
    rng = random.Random(seed)
    simulated = Simulated([(60 * at + rng.uniform(0, 20) * (at > 0), rate) for at, rate in enumerate(rates)])
    clock = measured(simulated, 60 * len(rates) + 30, rng)
    check(clock, simulated, 0, (60 * len(rates) + 30) * SECOND, rng)


@pytest.mark.parametrize("rate", [0, 50e-6, -200e-6])
def test_the_error_is_not_much_larger_than_that_of_a_measurement(rate):
    rng = random.Random(1)
    simulated = Simulated([(0, rate)])
    clock = measured(simulated, 600, rng)
    assert check(clock, simulated, 0, 600 * SECOND, rng) < 250_000


def test_it_grows_where_nothing_was_measured():
    rng = random.Random(2)
    simulated = Simulated([(0, 30e-6)])
    clock = measured(simulated, 20, rng)
    near = check(clock, simulated, 0, 20 * SECOND, rng)
    far = check(clock, simulated, 0, 500 * SECOND, rng)
    assert far > 2 * near


def test_a_long_run_keeps_the_first_and_the_last():
    rng = random.Random(3)
    simulated = Simulated([(0, 20e-6), (4000, 23e-6)])
    clock = measured(simulated, 20_000, rng)
    assert check(clock, simulated, 0, 20_000 * SECOND, rng) < 1_000_000


def test_nothing_is_known():
    assert not Clock().is_known and Clock().ours(5) == 5


def test_time_never_goes_back():
    rng = random.Random(4)
    clock = measured(Simulated([(0, 100e-6)]), 60, rng, round_trip=SECOND)
    moments = sorted(rng.randint(0, 60 * SECOND) for _ in range(1000))
    theirs = [Simulated([(0, 100e-6)]).theirs(at) for at in moments]
    found = [clock.ours(at) for at in theirs]
    assert found == sorted(found)


def test_an_answer_that_goes_back_says_nothing():
    clock = Clock()
    clock.add(10, 20, 1000)
    clock.add(30, 40, 900)
    assert clock.ours(1000) == 15
