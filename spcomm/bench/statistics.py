# SPDX-License-Identifier: MIT
"""Medians, spreads and ratios. The machine is noisy: nothing here is an average."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

GOOD_SPREAD = 0.05  # largest over smallest, less one


@dataclass(frozen=True)
class Summary:
    """One contender on one row: the median over the rounds of each round's median, and the range of those.

    `minimum` is the smallest sample of all, as the thesis reports it. The spread follows its rule (Gonzalez 2000,
    chapter 5): repeat the measurement, and compare the largest result with the smallest. The results are the medians
    of the rounds; a measurement of one round has only its samples.
    """

    median: float
    low: float
    high: float
    rounds: tuple[float, ...]
    minimum: float
    spread: float | None

    @property
    def is_good(self) -> bool | None:
        """Whether the number may be quoted: the spread is at most `GOOD_SPREAD`; None: nothing to compare."""
        return None if self.spread is None else self.spread <= GOOD_SPREAD


def summarise(rounds: Sequence[Sequence[float]]) -> Summary | None:
    """Sum up measurements, one sequence of batch times for each round; rounds without any are left out."""
    medians = tuple(statistics.median(batches) for batches in rounds if batches)
    if not medians:
        return None
    samples = [sample for batches in rounds for sample in batches]
    repeated = medians if len(medians) > 1 else samples
    smallest = min(repeated)
    spread = (max(repeated) - smallest) / smallest if len(repeated) > 1 and smallest > 0 else None
    middle = statistics.median(medians)
    return Summary(middle, min(medians), max(medians), medians, min(samples), spread)


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest of `values` that at least `percent` percent of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def best(summaries: Mapping[str, Summary | None]) -> str | None:
    """Return the name of the contender with the smallest median."""
    measured = {name: summary.median for name, summary in summaries.items() if summary is not None}
    return min(measured, key=measured.__getitem__) if measured else None


def ratio(ours: Summary | None, theirs: Summary | None) -> float | None:
    """Return our median over theirs: below 1 is faster."""
    return ours.median / theirs.median if ours and theirs and theirs.median > 0 else None


def ratio_range(ours: Summary | None, theirs: Summary | None) -> tuple[float, float] | None:
    """Smallest and largest ratio within one round, where both were measured within seconds of each other."""
    if not ours or not theirs or len(ours.rounds) != len(theirs.rounds):
        return None
    ratios = [mine / other for mine, other in zip(ours.rounds, theirs.rounds, strict=True)]
    return min(ratios), max(ratios)
