# SPDX-License-Identifier: MIT
"""Exercise 6: no deadlock, not even where every send waits; one message of each node to the right."""

from spcomm.learn.case import Case, Wrong, counted, per_node

EVERY_SEND_WAITS = ("--rendezvous", "0")


def cases(rng):
    for options in ((), EVERY_SEND_WAITS):
        for nodes in (2, 3, 4, 7, 1):
            yield Case(
                nodes,
                each=[{"value": f"letter {rng.randrange(1000)} from {rank}"} for rank in range(nodes)],
                options=options,
                name=f"{counted(nodes, 'node')}"
                + ", where every send waits (--rendezvous 0)" * bool(options),
            )


def judge(case, outcome):
    n = case.nodes
    per_node(case, outcome, [case.each[(rank - 1) % n]["value"] for rank in range(n)])
    for message in outcome.messages:
        right = (message.source + 1) % n
        if message.dest != right:
            raise Wrong(
                f"node {message.source} sent a message to node {message.dest}; expected one message, to its right "
                f"neighbour, node {right} ({case.name})"
            )
    for rank in range(n):
        count = sum(message.source == rank for message in outcome.messages)
        if count != 1 and not (n == 1 and count == 0):
            raise Wrong(
                f"node {rank} sent {count} messages; expected one, to the right neighbour ({case.name}): by send and "
                "recv, or sendrecv"
            )
