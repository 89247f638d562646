# SPDX-License-Identifier: MIT
"""Validation: cases that a fit has not seen, chosen by a hash that nobody can steer, beside its predictions.

The list of cases is committed before anything is fitted. A case is held out if the first eight bytes of the SHA-256 of
its text, a blank and the commit of the list are, as a number, a multiple of three.
"""

import hashlib
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spcomm.bench.results_file import read_text
from spcomm.model import ModelError
from spcomm.model.fit import fit
from spcomm.model.loggp import Estimate
from spcomm.model.measured import Case, Measurements
from spcomm.model.predict import predict
from spcomm.text import counted

SHARE = 3  # one case of so many is held out
WORST = 0.4  # goal for the error of a case, which may also be twice the spread of the second measurement


@dataclass(frozen=True)
class Checked:
    """A case that was held out: times in nanoseconds, and the spread of the second measurement."""

    case: Case
    predicted: Estimate
    measured: float
    spread: float
    is_crowded: bool

    @property
    def error(self) -> float:
        """The predicted time less the measured one, divided by that."""
        return self.predicted.value / self.measured - 1

    @property
    def limit(self) -> float:
        """The goal for this case."""
        return max(WORST, 2 * self.spread)

    @property
    def is_within_interval(self) -> bool:
        """Whether the measured time lies in the interval of the prediction."""
        return self.predicted.low <= self.measured <= self.predicted.high


def is_held_out(case: Case, commit: str) -> bool:
    """Return whether a case is held out."""
    digest = hashlib.sha256(f"{case} {commit}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % SHARE == 0


def read_cases(path: str) -> list[Case]:
    """Read a list of cases, one a line; lines that begin with # are remarks."""
    try:
        lines = [line.strip() for line in read_text(path).splitlines()]
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {path!r}: {getattr(error, 'strerror', None) or error}") from error
    found = [Case.parse(line) for line in lines if line and not line.startswith("#")]
    if not found:
        raise ModelError(f"{path!r} has no cases")
    return found


def validate(cases: Sequence[Case], commit: str, first: Measurements, second: Measurements) -> list[Checked]:
    """Fit the first measurement without the cases that are held out, and predict those.

    Raises
    ------
    ModelError
        A case of the list was not measured, or there is too little left to fit.
    """
    for measured, which in ((first, "first"), (second, "second")):
        missing = [case for case in cases if case not in measured.times]
        if missing:
            raise ModelError(
                f"the {which} measurement lacks {counted(len(missing), 'case')} of the list, such as {missing[0]}"
            )
    held = [case for case in cases if is_held_out(case, commit)]
    fitted = fit(first.without(held))
    return [
        Checked(
            case,
            predict(fitted, case).time_ns,
            first.times[case].time,
            second.times[case].spread,
            case.nodes > first.cores,
        )
        for case in held
    ]


def median_error(checked: Iterable[Checked]) -> float:
    """Return the median of the absolute errors."""
    return statistics.median(abs(entry.error) for entry in checked)
