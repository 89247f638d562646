# SPDX-License-Identifier: MIT
"""Exercise 3: the right triple on all nodes, by reductions alone."""

from spcomm.learn.case import Case, Wrong, counted, same, short

REDUCTIONS = {"global_sum", "global_min", "global_max", "allreduce", "reduce", "scan", "exscan"}
ALLOWED = REDUCTIONS | {"barrier", "bcast", "close"}


def cases(rng):
    for nodes, low, high in [(1, -9, 9), (2, -50, 50), (3, 1, 99), (4, -99, -1), (7, -50, 50)]:
        yield case_of([numbers(rng, low, high) for _ in range(nodes)], f"values from {low} to {high}")
    tied = [numbers(rng, 0, 50) for _ in range(4)]
    for rank in (1, 3):
        tied[rank].append(-5)
    yield case_of(tied, "nodes 1 and 3 have the least value")


def numbers(rng, low, high):
    return [rng.randint(low, high) for _ in range(rng.randint(1, 6))]


def case_of(lists, what):
    nodes = len(lists)
    return Case(
        nodes,
        each=[{"values": values} for values in lists],
        name=f"{counted(nodes, 'node')}, {what}",
    )


def judge(case, outcome):
    lists = [arguments["values"] for arguments in case.each]
    least = min(min(values) for values in lists)
    where = next(rank for rank, values in enumerate(lists) if least in values)
    expected = (sum(map(sum, lists)), least, where)
    for rank, value in enumerate(outcome.values):
        if not same(value, expected):
            advice = what_is_wrong(value, expected, lists, rank)
            raise Wrong(f"node {rank} returned {short(value)}; expected {expected} ({case.name}). {advice}")
    for rank, calls in enumerate(outcome.calls):
        other = sorted(set(calls) - ALLOWED)
        if other:
            raise Wrong(
                f"node {rank} called {', '.join(other)}: that sends the values to other nodes. Reduce them to one "
                "number first, then combine these numbers by reductions"
            )
        count = sum(calls[name] for name in REDUCTIONS)
        if count > 3:
            raise Wrong(
                f"node {rank} called {count} reductions; three are enough, however many values there are"
            )


def what_is_wrong(value, expected, lists, rank):
    if value is None:
        return "All nodes have to return the result: is something within an if, or meant for the root only?"
    if not isinstance(value, tuple) or len(value) != 3:
        return "It has to be a tuple of three: return total, least, where."
    if not same(value[0], expected[0]):
        if same(value[0], sum(lists[rank])):
            return f"The first is the sum of node {rank}'s own values; what of the others?"
        return "The first, the sum, is wrong."
    if not same(value[1], expected[1]):
        if same(value[1], min(lists[rank])):
            return f"The second is the least of node {rank}'s own values; what of the others?"
        return (
            "The second, the least value, is wrong: do you compare with a number that no node has, such as 0?"
        )
    tied = [node for node, values in enumerate(lists) if expected[1] in values]
    if any(same(value[2], node) for node in tied):  # a reduction may make it 2.0
        return f"The third: node {value[2]:g} has it too, but the lowest rank is wanted."
    return f"The third, the place of the least value, is wrong: node {expected[2]} has it."
