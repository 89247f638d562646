# SPDX-License-Identifier: MIT
"""The timing loop of the programs, on invented clocks."""

import pytest

from spcomm.bench.programs.driver import BATCHES, FIRST, MOST, measure, next_count


class Machine:
    """A work whose repetition takes so many seconds, on a clock of its own; share notes what it is given."""

    def __init__(self, cost):
        self.cost, self.counts, self.decisions = cost, [], []

    def batch(self, count):
        self.counts.append(count)
        return count * self.cost, 2 * count

    def share(self, decision):
        self.decisions.append(decision)
        return decision


@pytest.mark.parametrize("cost", [1e-9, 1e-7, 1e-5, 1e-3, 0.03])
def test_seconds_per_operation(cost):
    machine = Machine(cost)
    times = measure(machine.batch, 0.3, machine.share)
    assert times == pytest.approx([cost / 2] * len(times))
    assert machine.counts[0] == FIRST
    assert machine.counts[-len(times) :] == [machine.decisions[-1]["count"]] * len(times)
    assert len(machine.counts) == len(machine.decisions) + len(times)


@pytest.mark.parametrize("cost", [1e-6, 1e-5, 1e-4, 1e-3])
def test_batches_fill_the_time_given(cost):
    machine = Machine(cost)
    times = measure(machine.batch, 0.3, machine.share)
    assert len(times) == BATCHES
    assert sum(machine.counts[-BATCHES:]) * cost == pytest.approx(0.3, rel=0.5)


@pytest.mark.parametrize("cost", [1e-6, 1e-4, 0.02])
def test_warming_up_does_not_count(cost):
    machine = Machine(cost)
    times = measure(machine.batch, 0.3, machine.share, warm_up=1.0)
    assert sum(machine.counts[: -len(times)]) * cost >= 1.0
    assert len(times) == BATCHES


def test_repetitions_can_be_chosen():
    machine = Machine(1e-4)
    times = measure(machine.batch, 0.3, machine.share, repetitions=7)
    assert machine.counts[-BATCHES:] == [7] * BATCHES
    assert times == pytest.approx([1e-4 / 2] * BATCHES)


def test_slow_work_is_measured_a_few_times():
    machine = Machine(5.0)
    assert len(measure(machine.batch, 0.3, machine.share)) == 3
    assert machine.counts == [FIRST, 1, 1, 1]


def test_a_clock_that_stands_still_ends():
    assert next_count(MOST, 0.0, 0.3) == {"done": True, "count": MOST, "batches": BATCHES}
    assert next_count(MOST, 0.0, 0.3, cold=1.0)["done"]
