# SPDX-License-Identifier: MIT
"""Judges exercise 11: sorted, nothing lost, even shares, and no node had all of it."""

from collections import Counter
from itertools import chain
from numbers import Real

from spcomm.learn.case import Case, Wrong, counted, short

EACH = 400  # numbers of a node in the cases that are about shares
BY_ONE = "gather bcast scatter reduce".split()  # one node has what all nodes have
EXCHANGES = "alltoall send ssend sendrecv coordinated_send".split()


def cases(rng):
    def skewed():
        return int(10 ** rng.uniform(0, 9))

    yield case("different numbers", [[rng.randrange(10**6) for _ in range(EACH)] for _ in range(3)])
    yield case("skewed numbers", [[skewed() for _ in range(EACH)] for _ in range(4)])
    yield case("all numbers equal", [[7] * EACH for _ in range(4)])
    yield case(
        "few different numbers", [[rng.choice((1, 2, 2, 2, 3)) for _ in range(EACH)] for _ in range(7)]
    )
    yield case("sorted already", [list(range(rank * EACH, (rank + 1) * EACH)) for rank in range(3)])
    yield case("empty nodes", [[rng.randrange(50) for _ in range(EACH * (rank % 2))] for rank in range(4)])
    yield case("three numbers", [[rng.randrange(-9, 9)] if rank in (1, 4, 6) else [] for rank in range(7)])
    yield case("nothing at all", [[], []])
    yield case("numbers", [[rng.randrange(-50, 50) for _ in range(100)]])


def case(what, numbers):
    return Case(
        len(numbers),
        each=[{"mine": mine} for mine in numbers],
        name=f"{what} on {counted(len(numbers), 'node')}",
    )


def judge(case, outcome):
    numbers = [each["mine"] for each in case.each]
    shares = [checked_share(rank, value) for rank, value in enumerate(outcome.values)]
    check_all_there(case, numbers, shares)
    check_order(case, shares)
    check_nobody_has_all(case, outcome, numbers, shares)
    check_shares(case, shares)


def checked_share(rank, value):
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, list):
        raise Wrong(
            f"node {rank} returned {short(value)}; expected the list of its share, [] if there is nothing for it"
        )
    for item in value:
        if not isinstance(item, Real):
            raise Wrong(
                f"node {rank} returned {short(value)}; its share must be one list of numbers, without {short(item)}"
            )
    return value


def check_all_there(case, numbers, shares):
    before, after = (Counter(chain.from_iterable(lists)) for lists in (numbers, shares))
    if lost := before - after:
        number, count = next(iter(lost.items()))
        raise Wrong(
            f"{sum(lost.values())} numbers are lost, {number} {count} times among them ({case.name}): where do the "
            "first piece of a node begin and its last one end?"
        )
    if extra := after - before:
        number, count = next(iter(extra.items()))
        raise Wrong(
            f"there are {sum(extra.values())} numbers too many, {short(number)} {count} times among them ({case.name})"
        )


def check_order(case, shares):
    last = None  # (number, rank)
    for rank, share in enumerate(shares):
        for number in share:
            if last is not None and number < last[0]:
                where = (
                    f"after {last[0]} of node {last[1]}"
                    if last[1] != rank
                    else f"after {last[0]}, in its own share"
                )
                raise Wrong(f"node {rank} has {number} {where}: not sorted ({case.name})")
            last = number, rank


def check_nobody_has_all(case, outcome, numbers, shares):
    if case.nodes == 1:
        return
    for rank, calls in enumerate(outcome.calls):
        for name in BY_ONE:
            if calls[name]:
                raise Wrong(
                    f"node {rank} called {name}: that puts everything on one node, which may have no room; "
                    "use allgather for the samples and alltoall for the numbers"
                )
    have_moved = any(Counter(share) - Counter(mine) for share, mine in zip(shares, numbers, strict=True))
    exchanged = sum(calls[name] for calls in outcome.calls for name in EXCHANGES)
    if have_moved and not exchanged:
        raise Wrong(
            f"numbers went to other nodes, and no node called alltoall or sent a message ({case.name}): if all numbers "
            "went through allgather, every node had all of them"
        )
    check_messages(case, outcome, len(numbers[0]))


def check_messages(case, outcome, count):
    """The values of others that a node holds: those received, without those sent."""
    if case.nodes < 4 or count < EACH:
        return
    events = []
    for message in outcome.messages:
        events.append((message.sent, message.source, -message.bytes))
        if message.received is not None:
            events.append((message.received, message.dest, message.bytes))
    # There and back is all of it twice: the one in the middle then holds half. In an exchange each gets its share.
    limit = 0.4 * sum(message.bytes for message in outcome.messages)
    held = Counter()
    for _moment, rank, change in sorted(events):
        held[rank] += change
        if held[rank] > limit:
            raise Wrong(
                f"node {rank} received nearly all numbers of the others ({case.name}); no node has room for that"
            )


def check_shares(case, shares):
    total = sum(map(len, shares))
    largest, rank = max((len(share), rank) for rank, share in enumerate(shares))
    if total >= EACH * case.nodes // 2 and largest * case.nodes > 2 * total:
        many_equal = len(set(chain.from_iterable(shares))) < total // 2
        why = (
            "many are equal, and no splitter parts equal ones; what could make them differ?"
            if many_equal
            else "choose the splitters from samples of all nodes"
        )
        mean = total // case.nodes
        raise Wrong(
            f"node {rank} got {largest} of {total} numbers, and the mean is {mean} ({case.name}): {why}"
        )
