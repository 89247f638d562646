# SPDX-License-Identifier: MIT
"""Judges exercise 13: every message once, in its cycle, and by coordinated messages."""

from collections import Counter

from spcomm.learn.case import Case, Wrong, counted, short


def cases(rng):
    yield Case(2, each=[{"plan": [[[1, 70], [1, 71]]]}, {"plan": [[]]}], name="only node 0 sends, on 2 nodes")
    for nodes, cycles in ((3, 4), (1, 3), (4, 5), (7, 4)):
        values = iter(rng.sample(range(10000), 1000))  # all different: each message can be told
        silent = rng.randrange(nodes) if nodes > 1 else -1
        each = []
        for rank in range(nodes):
            plan = []
            for cycle in range(cycles):
                count = 0 if rank == silent or cycle == 1 else rng.randrange(5)
                plan.append([[rng.randrange(nodes), next(values)] for _ in range(count)])
            each.append({"plan": plan})
        yield Case(nodes, each=each, name=f"{cycles} cycles on {counted(nodes, 'node')}")


def judge(case, outcome):
    plans = [each["plan"] for each in case.each]
    cycles = len(plans[0])
    for rank, value in enumerate(outcome.values):
        if not isinstance(value, list) or len(value) != cycles:
            raise Wrong(
                f"node {rank} returned {short(value)}; expected a list of {cycles} lists, one for each cycle"
            )
        for cycle, came in enumerate(value):
            check_cycle(case, plans, rank, cycle, came)
    for rank, calls in enumerate(outcome.calls):
        if any(plans[rank]) and not calls["coordinated_send"]:
            raise Wrong(
                f"all messages came, but node {rank} did not send them by coordinated_send: this exercise is about "
                "cycles of coordinated messages"
            )


def check_cycle(case, plans, rank, cycle, came):
    try:
        found = Counter((source, value) for source, value in came)
    except (TypeError, ValueError):
        raise Wrong(
            f"node {rank} returned {short(came)} for cycle {cycle}; expected a list of pairs [source, value]"
        ) from None
    sent = [(source, dest, value) for source, plan in enumerate(plans) for dest, value in plan[cycle]]
    right = Counter((source, value) for source, dest, value in sent if dest == rank)
    for (source, value), _ in (right - found).items():
        raise Wrong(
            f"cycle {cycle}: node {source} sent {value} to node {rank}, which did not receive it in this cycle "
            f"({case.name}): receive until there are no more"
        )
    for (source, value), _ in (found - right).items():
        what = "twice" if right[source, value] else "which was not sent to it in this cycle"
        raise Wrong(
            f"cycle {cycle}: node {rank} received {short(value)} from node {short(source)}, {what} ({case.name})"
        )
