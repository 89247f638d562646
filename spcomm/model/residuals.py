# SPDX-License-Identifier: MIT
"""Residuals: the factors by which the terms of an operation miss measured times, interpolated between cases.

A few terms leave a factor between the measured and the modelled time. It is much the same for cases next to each other,
so a case that was not measured gets that of its neighbours: kriging, which is Gaussian process regression (Rasmussen
and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 5). The logarithm of the factor is taken
for a sample of a random function of nodes and bytes, both in octaves, with Matérn's correlation of order 3/2. Far from
all measurements the factor is 1, and its interval the widest.
"""

import math
from collections.abc import Sequence
from typing import Any

from spcomm.model import optional
from spcomm.model.loggp import Kernel, Residual

# The prior: a factor of e away from these numbers is one standard deviation.
EXPECTED = Kernel(amplitude=0.25, nodes_octaves=0.5, size_octaves=2.5, noise=0.07)


def factor(kernel: Kernel, known: Sequence[Residual], nodes: int, size: int) -> tuple[float, float]:
    """Return the expected logarithm of measured to modelled time at a case, and its variance for a measurement.

    >>> factor(EXPECTED, [], 4, 64)
    (0.0, 0.0674)
    """
    variance = kernel.amplitude**2 + kernel.noise**2
    if not known:
        return 0.0, variance
    np = optional("numpy")
    here = _covariance(kernel, places(known), places([(nodes, size, 0.0)]))[:, 0]
    weights = np.linalg.solve(_noisy(kernel, places(known)), here)
    values = np.array([value for _, _, value in known])
    return float(weights @ values), float(max(kernel.noise**2, variance - weights @ here))


def fit_kernel(groups: Sequence[Sequence[Residual]]) -> Kernel:
    """Find the kernel under which the residuals of all groups, each a function of its own, are most likely."""
    np, optimize = optional("numpy"), optional("scipy.optimize")
    known = [(places(group), np.array([value for _, _, value in group])) for group in groups]
    expected = np.log(list(vars(EXPECTED).values()))

    def unlikeliness(logarithms: Any) -> float:
        kernel = Kernel(*np.exp(logarithms).tolist())
        total = float(np.sum((logarithms - expected) ** 2)) / 2
        for where, values in known:
            lower = np.linalg.cholesky(_noisy(kernel, where))
            total += float(np.sum(np.linalg.solve(lower, values) ** 2)) / 2 + float(
                np.log(np.diag(lower)).sum()
            )
        return total

    found = optimize.minimize(
        unlikeliness, expected, method="L-BFGS-B", bounds=[(x - 4, x + 4) for x in expected]
    )
    return Kernel(*np.exp(found.x).tolist())


def places(known: Sequence[Residual]) -> Any:
    """Return nodes and bytes in octaves, a row for each case."""
    return optional("numpy").log2([(nodes, max(size, 1)) for nodes, size, _ in known])


def _noisy(kernel: Kernel, where: Any) -> Any:
    return _covariance(kernel, where, where) + kernel.noise**2 * optional("numpy").eye(len(where))


def _covariance(kernel: Kernel, some: Any, others: Any) -> Any:
    np = optional("numpy")
    apart = (some[:, None] - others[None]) / [kernel.nodes_octaves, kernel.size_octaves]
    distance = math.sqrt(3) * np.sqrt((apart**2).sum(axis=2))
    return kernel.amplitude**2 * (1 + distance) * np.exp(-distance)
