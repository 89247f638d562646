# SPDX-License-Identifier: MIT
"""Operations on a cluster with a core for each node, by LogGP: the algorithms of MPI, or one server for all.

These are closed forms of the textbook, without contention for links; `spcomm model simulate` has queues and noise.
"""

import math
from dataclasses import replace

from spcomm.model import terms
from spcomm.model.loggp import PARAMETERS, Estimate, LogGP
from spcomm.model.measured import Case

ALGORITHMS = ("tree", "server")


def predict(loggp: LogGP, case: Case, algorithm: str) -> Estimate:
    """Predict a case in nanoseconds; the interval has all parameters at their lower, and at their upper ends.

    Parameters
    ----------
    loggp : the parameters of the connections.
    case : operation, nodes and size; its transport does not matter.
    algorithm : "tree": dissemination, binomial trees, recursive doubling, each node sending for itself;
        "server": all messages go through one process, which handles one after the other.
    """
    terms.check(case)
    value, low, high = (time(at(loggp, end), case, algorithm) for end in ("value", "low", "high"))
    return Estimate(value, min(low, value), max(high, value))


def at(loggp: LogGP, end: str) -> LogGP:
    """Return the parameters at one end of their intervals."""

    def exact(found: Estimate | None) -> Estimate | None:
        return found and Estimate(*(getattr(found, end),) * 3)

    return replace(loggp, **{name: exact(getattr(loggp, name)) for name in PARAMETERS})


def time(loggp: LogGP, case: Case, algorithm: str) -> float:
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
