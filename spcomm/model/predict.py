# SPDX-License-Identifier: MIT
"""Prediction of an operation: on the machine that was measured, and on a cluster with a core for each node."""

import math
from dataclasses import dataclass, replace

from spcomm.model import ModelError, terms
from spcomm.model.fit import student
from spcomm.model.loggp import MOST_LOGARITHM, PARAMETERS, Estimate, Fit, LogGP
from spcomm.model.measured import Case
from spcomm.model.residuals import factor

ALGORITHMS = ("tree", "server")


@dataclass(frozen=True)
class Prediction:
    """The predicted time in nanoseconds, and whether nodes or bytes lie outside of what was measured.

    `terms_ns` is what the terms say without the residuals of neighbouring cases.
    """

    time_ns: Estimate
    is_extrapolated: bool
    terms_ns: float


def predict(fit: Fit, case: Case) -> Prediction:
    """Predict the time of a case on the machine that was measured.

    The time is that of the terms, times the factor by which they miss neighbouring cases. The interval combines the
    uncertainty of the coefficients with that of the factor, both on the scale of logarithms. With few more cases than
    coefficients, or far from all cases, it is so wide that `Estimate.is_known` is false. An operation that was measured
    at too few points, of nodes that have a core each, is predicted by LogGP alone.
    """
    terms.check(case)
    loggp = fit.of(case.transport)
    key = terms.key(case, fit.cores)
    fitted = fit.operations.get(case.transport, {}).get(key)
    if fitted is None and "crowded" not in key:
        time_ns = predict_cluster(loggp, case, "tree")
        return Prediction(time_ns, True, time_ns.value)
    if fitted is None:
        known = ", ".join(sorted(fit.operations.get(case.transport, {}))) or "none"
        raise ModelError(f"the fit has too few points of {key!r} over {case.transport}; it has: {known}")
    known = dict(zip(terms.names(key), terms.numbers(case, fit.cores, loggp), strict=True))
    if unknown := [name for name in fitted.terms if name not in known]:
        raise ModelError(
            f"the fit has a term {unknown[0]!r} of {key!r}, which is none; fit the measurement again"
        )
    numbers = [known[name] for name in fitted.terms]
    modelled = sum(number * term.value for number, term in zip(numbers, fitted.terms.values(), strict=True))
    variance = sum(
        a * b * fitted.covariance[i][j] for i, a in enumerate(numbers) for j, b in enumerate(numbers)
    )
    missed, scatter = factor(fitted.kernel, fitted.residuals, case.nodes, case.size)
    if modelled <= 0 or abs(missed) > MOST_LOGARITHM:
        raise ModelError(f"the fit says nothing of {case}: it makes a time of 0 or without an end there")
    time = modelled * math.exp(missed)
    deviation = math.sqrt(scatter + max(0.0, variance) / modelled / modelled)
    half = min(student(fitted.degrees) * deviation, MOST_LOGARITHM)
    outside = not (
        fitted.nodes[0] <= case.nodes <= fitted.nodes[1] and fitted.sizes[0] <= case.size <= fitted.sizes[1]
    )
    return Prediction(Estimate(time, time * math.exp(-half), time * math.exp(half)), outside, modelled)


def predict_cluster(loggp: LogGP, case: Case, algorithm: str) -> Estimate:
    """Predict a case on a cluster with a core for each node, by LogGP, in nanoseconds.

    These are closed forms of the textbook, without contention for links; `spcomm model simulate` has queues and noise.
    The interval has all parameters at their lower, and at their upper ends.

    Parameters
    ----------
    loggp : the parameters of the connections.
    case : operation, nodes and size; its transport does not matter.
    algorithm : "tree": dissemination, binomial trees, recursive doubling, each node sending for itself;
        "server": all messages go through one process, which handles one after the other.
    """
    terms.check(case)
    value, low, high = (_time(_at(loggp, end), case, algorithm) for end in ("value", "low", "high"))
    return Estimate(value, min(low, value), max(high, value))


def _at(loggp: LogGP, end: str) -> LogGP:
    """Return the parameters at one end of their intervals."""

    def exact(found: Estimate | None) -> Estimate | None:
        return found and Estimate(*(getattr(found, end),) * 3)

    return replace(loggp, **{name: exact(getattr(loggp, name)) for name in PARAMETERS})


def _time(loggp: LogGP, case: Case, algorithm: str) -> float:
    """Return the time in nanoseconds."""
    n, message, added = case.nodes, loggp.message_ns(case.size), loggp.size_ns(case.size)
    send, receive = loggp.overhead_send_ns.value, loggp.overhead_receive_ns.value
    each = max(loggp.gap_ns.value, send, receive) + added  # from one message of a process to its next
    rounds = math.ceil(math.log2(n))
    if case.operation == "one_way":
        return each
    if case.operation in ("pingpong", "one_to_all", "all_to_one"):
        return message + (n - 2) * each
    if algorithm == "tree":
        return message + (n - 2) * each if case.operation == "all_to_all" else rounds * message
    messages_in = {"broadcast": 1, "all_to_all": n * (n - 1)}.get(case.operation, n)
    messages_out = {"reduce": 1, "all_to_all": n * (n - 1)}.get(case.operation, n)
    # Up to the server and down again; between its first and its last message it handles one after the other.
    return 2 * message + (messages_in - 1 + messages_out - 1) * each
