# SPDX-License-Identifier: MIT
"""Medians over rounds, the best contender, ratios."""

import pytest

from spcomm.bench.statistics import best, percentile, ratio, ratio_range, summarise


def test_median_of_the_rounds_medians():
    summary = summarise([[1.0, 2.0, 100.0], [4.0], [3.0, 3.0]])
    assert summary.rounds == (2.0, 4.0, 3.0)
    assert (summary.median, summary.low, summary.high) == (3.0, 2.0, 4.0)


def test_the_five_percent_rule():
    """(largest - smallest) / smallest, of the rounds; of one round's samples, as there is nothing else."""
    assert summarise([[1.0], [1.25], [1.125]]).spread == 0.25
    assert summarise([[1.0, 9.0, 1.0], [1.0]]).spread == 0.0
    assert summarise([[2.0, 3.0]]).spread == 0.5
    good = [[100.0], [103.0], [104.0]]
    assert summarise(good).is_good is True
    assert summarise([*good, [106.0]]).is_good is False
    assert (summarise([[1.0]]).spread, summarise([[1.0]]).is_good) == (None, None)
    assert summarise([[3.0, 0.5], [2.0, 2.0]]).minimum == 0.5


@pytest.mark.parametrize("rounds", [[], [[]], [[], []]])
def test_nothing_measured(rounds):
    assert summarise(rounds) is None


def test_a_round_without_measurements_is_left_out():
    assert summarise([[], [5.0]]).rounds == (5.0,)


def test_best_is_the_smallest_median():
    assert best({"a": summarise([[2.0]]), "b": summarise([[1.0]]), "c": None}) == "b"
    assert best({"c": None}) is None
    assert best({}) is None


def test_ratio():
    ours, theirs = summarise([[1.0], [3.0], [2.0]]), summarise([[4.0], [4.0], [2.0]])
    assert ratio(ours, theirs) == 0.5
    assert ratio_range(ours, theirs) == (0.25, 1.0)


def test_no_ratio_without_both():
    assert ratio(None, summarise([[1.0]])) is None
    assert ratio(summarise([[1.0]]), None) is None
    assert ratio_range(summarise([[1.0], [2.0]]), summarise([[1.0]])) is None


def test_percentiles_are_values_that_were_measured():
    hundred = [float(n) for n in range(100, 0, -1)]
    assert percentile(hundred, 99) == 99.0
    assert percentile(hundred, 50) == 50.0
    assert percentile(hundred[:30], 99) == 100.0
    assert percentile([7.0], 99) == 7.0
