# SPDX-License-Identifier: MIT
"""Judges exercise 12: the answers, that nothing is left, and that no node is waited for by name."""

import numpy as np

from spcomm.learn.case import Case, Wrong, close, same, short

PARTS = "the parts of a record come from the node that sent it, after it"


def cases(rng):
    # Halves are added without rounding, so the order of adding makes no difference.
    def array():
        return np.array([rng.randrange(100) / 2 for _ in range(rng.randint(1, 6))])

    def letter():
        kind = rng.choice(("text", "array", "record"))
        if kind == "text":
            return [("text", "".join(rng.choice("abcdefgh") for _ in range(rng.randint(0, 8))))]
        if kind == "array":
            return [("array", array())]
        name, parts = rng.choice(("rod", "plate", "ball")), rng.randint(0, 3)
        return [("record", {"name": name, "parts": parts}), *(("part", array()) for _ in range(parts))]

    def one_of_each():
        record = {"name": "first", "parts": 2}
        return [
            ("text", "begin"),
            ("array", array()),
            ("record", record),
            ("part", array()),
            ("part", array()),
        ]

    for nodes in (2, 3, 1, 4, 7):
        each = [{"letters": []}]
        for rank in range(1, nodes):
            more = [item for _ in range(rng.randint(0, 6)) for item in letter()]
            each.append({"letters": [*one_of_each(), *more] if rank != 3 else []})
        yield Case(nodes, each=each)


def judge(case, outcome):
    check_unread(outcome)
    answers = outcome.values[0]
    if not isinstance(answers, list) or len(answers) != case.nodes:
        raise Wrong(
            f"node 0 returned {short(answers)}; expected a list with one list for each of {case.nodes} nodes"
        )
    for rank in range(1, case.nodes):
        letters = case.each[rank]["letters"]
        check_of_one(case, rank, answers[rank], list(wanted(letters)))
        if outcome.values[rank] is not None:
            raise Wrong(
                f"node {rank} returned {short(outcome.values[rank])}; expected None: node 0 has all answers"
            )
    if not same(answers[0], []):
        raise Wrong(
            f"node 0 returned {short(answers[0])} as its answers to itself; expected []: it gets no letter of its own"
        )


def wanted(letters):
    items = iter(letters)
    for kind, data in items:
        if kind == "text":
            yield data.upper()
        elif kind == "array":
            yield float(data.sum())
        else:
            yield {"name": data["name"], "sums": [float(next(items)[1].sum()) for _ in range(data["parts"])]}


def check_unread(outcome):
    unread = [message for message in outcome.messages if message.received is None]
    if unread:
        first = unread[0]
        raise Wrong(
            f"{len(unread)} messages were never received, the first one from node {first.source} to node {first.dest} "
            f"with tag {first.tag}: when is node 0 sure that no more will come?"
        )


def check_of_one(case, rank, found, right):
    if not isinstance(found, list):
        raise Wrong(
            f"for node {rank} there is {short(found)}; expected a list of {len(right)} answers ({case.name})"
        )
    if len(found) != len(right):
        raise Wrong(
            f"for node {rank} there are {len(found)} answers; it sent {len(right)} letters, not counting the parts "
            f"of records ({case.name}); {PARTS}"
        )
    for place, (answer, expected) in enumerate(zip(found, right, strict=True)):
        if close(answer, expected):
            continue
        if any(close(answer, other) for other in right):
            raise Wrong(
                f"answer {place} to node {rank} is {short(answer)}; expected {short(expected)} ({case.name}): that is "
                "the answer to another letter, so the order of that node's letters is lost"
            )
        raise Wrong(
            f"answer {place} to node {rank} is {short(answer)}; expected {short(expected)} ({case.name}); {PARTS}"
        )
