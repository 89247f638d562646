# SPDX-License-Identifier: MIT
"""Prediction of an operation from a fit, with the interval in which 95 % of measurements are expected."""

import math
from dataclasses import dataclass

from spcomm.model import cluster, terms
from spcomm.model.errors import ModelError
from spcomm.model.fit import student
from spcomm.model.loggp import Estimate, Fit
from spcomm.model.measured import Case


@dataclass(frozen=True)
class Prediction:
    """The predicted time in nanoseconds, and whether nodes or bytes lie outside of what was measured."""

    time_ns: Estimate
    is_extrapolated: bool


def predict(fit: Fit, case: Case) -> Prediction:
    """Predict the time of a case on the machine that was measured.

    The interval combines the uncertainty of the coefficients with the scatter of the cases around the fit, both on
    the scale of logarithms. An operation that was measured at too few points, of nodes that have a core each, is
    predicted by LogGP alone.
    """
    terms.check(case)
    loggp = fit.of(case.transport)
    key = terms.key(case, fit.cores)
    fitted = fit.operations.get(case.transport, {}).get(key)
    if fitted is None and "crowded" not in key:
        return Prediction(cluster.predict(loggp, case, "tree"), True)
    if fitted is None:
        known = ", ".join(sorted(fit.operations.get(case.transport, {}))) or "none"
        raise ModelError(f"the fit has too few points of {key!r} over {case.transport}; it has: {known}")
    known = dict(zip(terms.names(key), terms.numbers(case, fit.cores, loggp), strict=True))
    numbers = [known[name] for name in fitted.terms]
    time = sum(number * term.value for number, term in zip(numbers, fitted.terms.values(), strict=True))
    if time <= 0:
        raise ModelError(f"the fit says nothing of {case}: all its terms are 0 there")
    variance = sum(
        a * b * fitted.covariance[i][j] for i, a in enumerate(numbers) for j, b in enumerate(numbers)
    )
    half = student(fitted.degrees) * math.sqrt(fitted.sigma**2 + max(0.0, variance) / time**2)
    outside = not (
        fitted.nodes[0] <= case.nodes <= fitted.nodes[1] and fitted.sizes[0] <= case.size <= fitted.sizes[1]
    )
    return Prediction(Estimate(time, time * math.exp(-half), time * math.exp(half)), outside)
