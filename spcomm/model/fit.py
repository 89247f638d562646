# SPDX-License-Identifier: MIT
"""Least squares: LogGP and the terms of operations from measured times.

All fits minimise the logarithm of measured to modelled time, so that a case of a microsecond counts as much as one of
a millisecond, with a loss that grows only linearly beyond a tenth (`soft_l1`), so that a disturbed case does not bend
the rest. Coefficients are 0 or more. Their confidence intervals follow from the Jacobian at the minimum; that of a
coefficient which no case determines is ten times its value wide on each side. `spcomm.model.residuals` interpolates
the residuals.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spcomm.model import ModelError, optional, terms
from spcomm.model.loggp import Estimate, Fit, LogGP, OperationFit, size_numbers
from spcomm.model.measured import Case, Measurements, Times
from spcomm.model.residuals import EXPECTED, fit_kernel
from spcomm.text import counted

LEAST_SIZES = 2  # of each test of two nodes
LEAST_CASES = 12  # of all of them together: two more than values to fit
CONFIDENCE = 0.95
TOLERATED = 0.1  # residuals of the logarithm beyond which the loss is linear
UNDETERMINED = 10.0  # standard deviation, in values, of a coefficient that the cases say nothing about
QUANTILES = 21
MEASURE = "`spcomm bench sweep paths --json FILE` measures what is needed"
TESTS = ("pingpong", "one_way", "send_overhead", "receive_overhead")


def fit(measured: Measurements) -> Fit:
    """Fit each transport that was measured.

    Raises
    ------
    ModelError
        There are too few cases for LogGP.
    """
    transports, operations = {}, {}
    for name in sorted({case.transport for case in measured.times}):
        transports[name], pairs = fit_loggp(measured, name)
        found = {**fit_operations(measured, name, transports[name]), **pairs}
        kernel = fit_kernel([operation.residuals for operation in found.values()])
        operations[name] = {key: replace(operation, kernel=kernel) for key, operation in found.items()}
    return Fit(transports, operations, measured.cores, measured.machine)


# ---- LogGP


def fit_loggp(measured: Measurements, transport: str) -> tuple[LogGP, dict[str, OperationFit]]:
    """Fit LogGP to four tests between two nodes, at all sizes together; return also the terms of two of the tests.

    The bytes of a message add its size's time: a step beyond a slot, and the gap per byte. Half a ping-pong takes both
    overheads, the latency, and that time. A call of send takes its overhead and a share of that time, so does a call
    of recv; one-way messages follow each other after the gap and a share of that time, since the copies of sender and
    receiver overlap. The shares are fitted, too.
    """
    np = optional("numpy")
    tests = {name: measured.of(name, transport) for name in TESTS}
    for name, found in tests.items():
        if len({case.size for case in found}) < LEAST_SIZES:
            raise ModelError(
                f"too few points to fit {transport}: {name} was measured at {counted(len(found), 'size')}, and LogGP"
                f" needs at least {LEAST_SIZES}; {MEASURE}"
            )
    if (cases := sum(map(len, tests.values()))) < LEAST_CASES:
        raise ModelError(
            f"too few points to fit {transport}: {', '.join(TESTS)} were measured at {cases} sizes together, and LogGP"
            f" needs at least {LEAST_CASES}; {MEASURE}"
        )
    rows = [
        (TESTS.index(name), *size_numbers(case.size), times.time)
        for name, found in tests.items()
        for case, times in found.items()
    ]
    test, slot, short, long, time = (np.array(column, float) for column in zip(*rows, strict=True))

    def model(values: Any) -> Any:
        send, receive, latency, gap, per_byte, per_slot, per_long, *shares = values
        added = slot * per_slot + short * per_byte + long * per_long
        bases = [send + receive + latency, gap, send, receive]
        return np.choose(
            test.astype(int), [base + share * added for base, share in zip(bases, [1, *shares], strict=True)]
        )

    values, covariance, sigma, degrees = least_squares(model, time, start_of(tests))
    estimates = [estimate(value, covariance[k][k], degrees) for k, value in enumerate(values)]
    loggp = LogGP(*estimates[:5], noise(tests["pingpong"]), *estimates[5:7])
    share = values[7]
    # Each of the terms as a function of the parameters, by its derivatives: those of a ping-pong, and of one way.
    pingpong, one_way = np.zeros((4, len(values))), np.zeros((4, len(values)))
    pingpong[0, :3] = one_way[0, 3] = 1
    for row, column in enumerate((5, 4, 6), 1):
        pingpong[row, column], one_way[row, column], one_way[row, 7] = 1, share, values[column]
    added = values[[5, 4, 6]]
    coefficients = {"pingpong": [sum(values[:3]), *added], "one_way": [values[3], *(share * added)]}
    return loggp, {
        name: operation_fit(
            terms.PAIR,
            coefficients[name],
            derivatives @ covariance @ derivatives.T,
            sigma,
            degrees,
            tests[name],
            np.array([terms.numbers(case, measured.cores, loggp) for case in tests[name]]),
        )
        for name, derivatives in (("pingpong", pingpong), ("one_way", one_way))
    }


def start_of(tests: Mapping[str, Mapping[Case, Times]]) -> list[float]:
    """Return a guess of the parameters."""
    smallest = {name: min(found.items())[1].time for name, found in tests.items()}
    case, largest = max(tests["pingpong"].items())
    per_byte = max(largest.time - smallest["pingpong"], 1e-3) / max(case.size, 1)
    guess = [
        smallest["send_overhead"],
        smallest["receive_overhead"],
        smallest["pingpong"] / 2,
        smallest["one_way"],
    ]
    return [*guess, per_byte, smallest["pingpong"] / 2, per_byte, 0.7, 0.4, 0.4]


def noise(found: Mapping[Case, Times]) -> tuple[float, ...]:
    """Return quantiles of all samples, each divided by the median of its case."""
    ratios = sorted(
        sample / statistics.median(times.samples) for times in found.values() for sample in times.samples
    )
    last = len(ratios) - 1
    return tuple(ratios[round(k * last / (QUANTILES - 1))] for k in range(QUANTILES))


# ---- operations


def fit_operations(measured: Measurements, transport: str, loggp: LogGP) -> dict[str, OperationFit]:
    """Fit the terms of each operation of more than two nodes that was measured at enough points."""
    groups: dict[str, dict[Case, Times]] = {}
    for case, times in measured.times.items():
        plain = case.transport == transport and not case.direct and not case.encrypted
        if plain and case.operation in terms.OPERATIONS and not terms.of(case.operation).is_pair:
            groups.setdefault(terms.key(case, measured.cores), {})[case] = times
    found = {key: fit_operation(key, group, measured.cores, loggp) for key, group in sorted(groups.items())}
    return {key: fitted for key, fitted in found.items() if fitted}


def fit_operation(key: str, group: Mapping[Case, Times], cores: int, loggp: LogGP) -> OperationFit | None:
    """Fit the terms of one operation; None if there are too few cases for its terms."""
    np = optional("numpy")
    table = np.array([terms.numbers(case, cores, loggp) for case in group])
    time = np.array([times.time for times in group.values()])
    used = independent(table / time[:, None])
    if "byte" not in terms.names(key):
        used = used[: len(group) - 1]  # without bytes the first term says the most
    if not used or len(group) <= len(used):
        return None
    part = table[:, used]
    # Non-negative least squares of relative errors, as a start.
    start, _ = optional("scipy.optimize").nnls(part / time[:, None], np.ones(len(time)))
    start = np.maximum(start, 1e-6 * time.min() / np.maximum(part.max(axis=0), 1e-9))
    values, covariance, sigma, degrees = least_squares(lambda chosen: part @ chosen, time, start)
    names = terms.names(key)
    return operation_fit([names[column] for column in used], values, covariance, sigma, degrees, group, part)


def operation_fit(
    names: Sequence[str],
    values: Any,
    covariance: Any,
    sigma: float,
    degrees: int,
    group: Mapping[Case, Times],
    table: Any,
) -> OperationFit:
    """Put the terms together with the cases that were measured, for each of which the table has what terms multiply."""
    np = optional("numpy")
    missed = np.log([times.time for times in group.values()]) - np.log(np.maximum(table @ values, 1e-12))
    nodes, sizes = [case.nodes for case in group], [case.size for case in group]
    return OperationFit(
        {name: estimate(values[k], covariance[k][k], degrees) for k, name in enumerate(names)},
        tuple(map(tuple, covariance.tolist())),
        sigma,
        degrees,
        (min(nodes), max(nodes)),
        (min(sizes), max(sizes)),
        tuple(zip(nodes, sizes, missed.tolist(), strict=True)),
        EXPECTED,
    )


def independent(table: Any) -> list[int]:
    """Return the columns that the ones before do not determine."""
    np = optional("numpy")
    scaled = table / np.maximum(np.linalg.norm(table, axis=0), 1e-300)
    used: list[int] = []
    for column in range(table.shape[1]):
        if np.linalg.matrix_rank(scaled[:, [*used, column]], tol=1e-6) > len(used):
            used.append(column)
    return used


def least_squares(
    model: Callable[[Any], Any], time: Any, start: Sequence[float]
) -> tuple[Any, Any, float, int]:
    """Fit values from 0 on; return them, their covariance, the standard deviation of residuals, degrees of freedom.

    A value that no case determines stays at its start: the solver would move it by what rounding leaves of a slope.
    """
    np, optimize = optional("numpy"), optional("scipy.optimize")
    start = np.maximum(np.asarray(start, float), 1e-12)
    scaled = np.ones(len(start))
    logarithm = np.log(time)

    def residuals(scaled: Any) -> Any:
        return np.log(np.maximum(model(scaled * start), 1e-12)) - logarithm

    def residuals_of(chosen: Any) -> Any:
        scaled[used] = chosen
        return residuals(scaled)

    used = independent(optimize.approx_fprime(scaled, residuals))
    found = optimize.least_squares(
        residuals_of, scaled[used], bounds=(0, np.inf), loss="soft_l1", f_scale=TOLERATED, max_nfev=2000
    )
    scaled[used] = found.x
    degrees = max(1, len(time) - len(start))
    sigma = math.sqrt(float(np.sum(residuals(scaled) ** 2)) / degrees)
    information = np.eye(len(start)) / UNDETERMINED**2
    information[np.ix_(used, used)] += found.jac.T @ found.jac / max(sigma, 1e-9) ** 2
    return scaled * start, np.linalg.inv(information) * np.outer(start, start), sigma, degrees


def estimate(value: float, variance: float, degrees: int) -> Estimate:
    """Return the value with its confidence interval, which ends at 0."""
    half = student(degrees) * math.sqrt(max(0.0, variance))
    return Estimate(float(value), max(0.0, float(value - half)), float(value + half))


def student(degrees: int) -> float:
    """Return the quantile of Student's t distribution that leaves out half of what CONFIDENCE leaves out."""
    return float(optional("scipy.stats").t.ppf((1 + CONFIDENCE) / 2, degrees))
