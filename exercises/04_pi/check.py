# SPDX-License-Identifier: MIT
"""Exercise 4: the work is divided, one reduction, and π on all nodes."""

import math

from spcomm.learn.case import Case, Wrong, close, counted, short

REDUCTIONS = {"global_sum", "allreduce"}
ALLOWED = REDUCTIONS | {"work", "barrier", "close"}


def cases(rng):
    for nodes, strips in [(2, 12), (3, 20), (4, 40), (4, 3), (7, rng.randrange(30, 60)), (1, 20)]:
        yield Case(nodes, {"strips": strips}, name=f"{strips} strips on {counted(nodes, 'node')}")


def judge(case, outcome):
    strips, where = case.arguments["strips"], f"({case.name})"
    done = [round(units) for units in outcome.work]
    few, many = strips // case.nodes, -(-strips // case.nodes)
    share = f"{few}" if few == many else f"{few} or {many}"
    for rank, count in enumerate(done):
        if not few <= count <= many:
            raise Wrong(
                f"node {rank} computed {count} strips; expected {share} {where}. The nodes computed "
                f"{', '.join(map(str, done))}; each strip is for one node, and the shares must be equal"
            )
    if sum(done) != strips:
        raise Wrong(
            f"the nodes computed {', '.join(map(str, done))} strips, {sum(done)} in all; expected {strips} "
            f"{where}: what becomes of the rest if they cannot be divided equally?"
        )
    communication(case, outcome)
    pi = math.fsum(4.0 / (1.0 + ((strip + 0.5) / strips) ** 2) / strips for strip in range(strips))
    for rank, value in enumerate(outcome.values):
        if not close(value, pi, 1e-9):
            raise Wrong(
                f"node {rank} returned {short(value)}; with {strips} strips π is {pi:.12f} {where}. {advice(value)}"
            )


def communication(case, outcome):
    for rank, calls in enumerate(outcome.calls):
        other = sorted(set(calls) - ALLOWED)
        if other:
            raise Wrong(
                f"node {rank} called {', '.join(other)}; one reduction, which all nodes call, is enough"
            )
        count = sum(calls[name] for name in REDUCTIONS)
        if count != 1 and case.nodes > 1:
            raise Wrong(
                f"node {rank} called {count} reductions; expected one ({case.name}): "
                + ("the result has the parts of one node only" if count == 0 else "take it out of the loop")
            )


def advice(value):
    if value is None:
        return "All nodes have to return it."
    return "Each strip has to be in the sum once: which strips does this node have, and what does it add to the sum?"
