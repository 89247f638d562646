# SPDX-License-Identifier: MIT
"""Judges exercise 10: the rod is that of one node, and a step costs each node two small messages."""

from collections import Counter

import numpy as np

from spcomm.learn.case import Case, Wrong, counted, short

LONGEST = 64  # bytes of a message: one number of any kind
COLLECTIVES = "allgather alltoall gather scatter bcast reduce allreduce global_sum barrier".split()


def cases(rng):
    for nodes, cells, steps in (
        (2, 10, 12),
        (1, 6, 5),
        (3, 31, 20),
        (4, 40, 20),
        (7, 50, 15),
        (4, 3, 8),
        (7, 1, 5),
    ):
        rod = [round(rng.uniform(0, 100), 3) for _ in range(cells + 2)]
        name = f"{counted(cells, 'cell')} on {counted(nodes, 'node')}"
        yield Case(nodes, {"rod": rod, "steps": steps}, name=name)


def judge(case, outcome):
    blocks = [checked_block(rank, value) for rank, value in enumerate(outcome.values)]
    rod, steps = case.arguments["rod"], case.arguments["steps"]
    found, right = np.concatenate(blocks), alone(rod, steps)
    if len(found) != len(right):
        raise Wrong(
            f"the blocks of all nodes have {len(found)} cells in all; the rod has {len(right)} between its borders "
            f"({case.name}; by rank: {[len(block) for block in blocks]})"
        )
    if not np.array_equal(found, right):
        place = int(np.flatnonzero(found != right)[0])
        ends = np.cumsum([len(block) for block in blocks])
        rank = int(np.searchsorted(ends, place, side="right"))
        raise Wrong(
            f"cell {place} of the rod, on node {rank}, is {found[place]:.6f} after {steps} steps; one node finds "
            f"{right[place]:.6f} ({case.name}): the cells beside a block have to come anew before each step, "
            "and the rod's own borders stay as they are"
        )
    check_messages(case, outcome, steps)


def alone(rod, steps):
    u = np.array(rod)
    for _ in range(steps):
        u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
    return u[1:-1]


def checked_block(rank, value):
    try:
        block = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        block = None
    if value is None or block is None or block.ndim != 1:
        raise Wrong(
            f"node {rank} returned {short(value)}; expected a list or an array of its cells, which may be empty"
        )
    return block


def check_messages(case, outcome, steps):
    sent = Counter(message.source for message in outcome.messages)
    for rank, count in sent.items():
        if count > 2 * steps:
            raise Wrong(
                f"node {rank} sent {count} messages in {steps} steps; two in a step are enough, one to each neighbour "
                f"({case.name})"
            )
    longest = max((message.bytes for message in outcome.messages), default=0)
    if longest > LONGEST:
        raise Wrong(
            f"a message had {longest} bytes ({case.name}): a neighbour needs one cell, the last one that you have on "
            "its side, not your whole block"
        )
    for rank, calls in enumerate(outcome.calls):
        for name in COLLECTIVES:
            if calls[name] >= steps:
                raise Wrong(
                    f"node {rank} called {name} {calls[name]} times in {steps} steps: neighbours alone need anything "
                    "from each other; use sendrecv"
                )
