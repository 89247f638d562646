# SPDX-License-Identifier: MIT
"""Medians, spreads and ratios. The machine is noisy: nothing here is an average."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spcomm.bench.table import percent

GOOD_SPREAD = 0.05  # largest over smallest, less one

# Rounds of each side: with three, all of one side lie above all of the other by chance in one case of ten.
LEAST_ROUNDS = 4
RESAMPLES = 4000
CONFIDENCE = 0.95
DIFFERENCE = 0.05  # smaller ones are no news: two runs of the same program differ as much
SAME = 0.10  # an interval that reaches no further from 1 shows that nothing has changed much


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


def percentile(values: Sequence[float], share: int) -> float:
    """Return the smallest of `values` that at least `share` percent of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]


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


@dataclass(frozen=True)
class Change:
    """New over old: the ratio of the medians, its interval (None: too few rounds for one), and a verdict."""

    ratio: float
    interval: tuple[float, float] | None
    verdict: str


def change(old: Summary, new: Summary) -> Change:
    """Compare two measurements by the bootstrap over their rounds.

    Rounds are independent of each other, the samples of a round are not; so the rounds' medians are drawn again, with
    replacement, and the interval holds the middle of the ratios of their medians (Efron 1979). Where a side is not
    good, the verdict says so first.
    """
    found = new.median / old.median
    if min(len(old.rounds), len(new.rounds)) < LEAST_ROUNDS:
        return Change(found, None, f"too few rounds to tell: at least {LEAST_ROUNDS} of each")
    low, high = interval = bootstrap(old.rounds, new.rounds)
    if low > 1 and found > 1 + DIFFERENCE:
        verdict = "slower"
    elif high < 1 and found < 1 - DIFFERENCE:
        verdict = "faster"
    else:
        verdict = "same" if low >= 1 - SAME and high <= 1 + SAME else ""
    poor = [
        f"{percent(side.spread)} {when}"
        for side, when in ((old, "before"), (new, "now"))
        if side.spread is not None and not side.is_good
    ]
    if verdict and poor:
        verdict = f"not good: spread {', '.join(poor)}; seems {verdict}"
    return Change(found, interval, verdict or "too noisy to tell")


def bootstrap(old: Sequence[float], new: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the ratio of the medians, new over old; the same for the same rounds."""
    import numpy as np

    generator = np.random.default_rng(0)
    drawn = [np.median(generator.choice(side, (RESAMPLES, len(side))), axis=1) for side in (old, new)]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(drawn[1] / drawn[0], [tail, 100 - tail])
    return float(low), float(high)
