# SPDX-License-Identifier: MIT
"""The sum, by one allreduce of the program's own."""

from spcomm.learn.case import Case, Wrong, per_node


def cases(rng):
    """One case."""
    yield Case(2, {"items": [2 * rng.randrange(100) for _ in range(10)]})


def judge(case, outcome):
    """On each node, and one allreduce."""
    per_node(case, outcome, [sum(case.arguments["items"])] * case.nodes)
    if [calls["allreduce"] for calls in outcome.calls] != [1] * case.nodes:
        raise Wrong("each node has to call allreduce once")
