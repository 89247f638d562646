# SPDX-License-Identifier: MIT
"""Exercise 5: all values in the order of the ring, by messages to the right neighbour alone."""

from spcomm.learn.case import Case, Wrong, same, short

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def cases(rng):
    for nodes in (1, 2, 3, 4, 7):
        values = rng.sample(LETTERS, nodes)
        yield Case(nodes, each=[{"value": value} for value in values])


def judge(case, outcome):
    n = case.nodes
    values = [arguments["value"] for arguments in case.each]
    for rank, seen in enumerate(outcome.values):
        expected = [values[(rank - step) % n] for step in range(n)]
        if not same(seen, expected):
            raise Wrong(
                f"node {rank} returned {short(seen)}; expected {expected} ({case.name}). "
                + what_is_wrong(seen, expected, n)
            )
    travelling(case, outcome)


def what_is_wrong(seen, expected, n):
    if not isinstance(seen, list):
        return "It has to be a list of values."
    if len(seen) != n:
        return f"It has seen {len(seen)} of {n} values: how many steps does it take until it has seen all?"
    if n > 2 and all(same(one, seen[1]) for one in seen[1:]):
        return "The same value came again and again: pass on the value that came last, not always your own."
    if same(seen, [expected[0], *expected[:0:-1]]):
        return "The values came the other way round: send to the right, receive from the left."
    return "Its own value comes first, then that of its left neighbour, and so on to the left."


def travelling(case, outcome):
    n = case.nodes
    for message in outcome.messages:
        right = (message.source + 1) % n
        if message.dest != right:
            raise Wrong(
                f"node {message.source} sent a message to node {message.dest}; expected all of its messages to go "
                f"to its right neighbour, node {right} ({case.name})"
            )
        if message.received is None:
            raise Wrong(
                f"nobody received a message from node {message.source} to node {message.dest} ({case.name}): "
                "is there a step too many?"
            )
    count = len(outcome.messages)
    if count != n * (n - 1):
        raise Wrong(
            f"there were {count} messages; expected {n} × {n - 1} = {n * (n - 1)} ({case.name}): each node sends "
            "size - 1 messages, and communicates in no other way"
        )
