# SPDX-License-Identifier: MIT
"""The timing loop that every contender runs: batches of many repetitions, as many as fit into the time given.

A work is a function ``<program>_<work>(comm, count, **parameters)`` that repeats an operation `count` times on all
nodes and returns the number of operations, so that a round trip counts as two messages. A work with a preparation also
returns the seconds that the operations alone took. Node 0 holds the clock; `share` distributes its decision: a function
of `comm` that takes node 0's object and returns it on every node.
"""

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any

BATCHES = 15  # per work and round
FIRST, MOST = 4, 200_000  # repetitions in a batch
# Seconds of the first work, before measurement: nodes that have just started are still settling.
WARM_UP = 0.2


def main() -> None:
    """``driver.py LIBRARY PROGRAM ARGUMENTS``: run a whole program of `with_<LIBRARY>.py`, or works of that program."""
    library, program, *arguments = sys.argv[1:]
    module = import_module(f"with_{library}")
    comm = module.start()
    if hasattr(module, program):
        getattr(module, program)(comm, *arguments)
    else:
        run(comm, vars(module), program, *arguments)


def run(
    comm: Any, known: Mapping[str, Callable[..., Any]], program: str, path: str, seconds: str, orders: str
) -> None:
    """Run works, which are those `known` as ``<program>_<work>``; write a line of JSON for each.

    The orders are ``[{"key":, "work":, "parameters":, "repetitions":}, …]``; as many repetitions make a batch, or,
    with null, as many as fit.
    """
    for number, order in enumerate(json.loads(orders)):
        work = partial(known[f"{program}_{order['work']}"], comm, **order["parameters"])

        def batch(count: int, work: Callable[..., Any] = work) -> tuple[float, int]:
            begin = perf_counter()
            result = work(count)
            return (result[1], result[0]) if isinstance(result, tuple) else (perf_counter() - begin, result)

        warm_up = 0.0 if number else WARM_UP
        times = measure(batch, float(seconds), partial(known["share"], comm), warm_up, order["repetitions"])
        if comm.rank == 0:
            with open(path, "a", encoding="utf-8") as file:
                print(json.dumps({order["key"]: times}), file=file)


def measure(
    batch: Callable[[int], tuple[float, int]],
    seconds: float,
    share: Callable[[Any], Any],
    warm_up: float = 0.0,
    repetitions: int | None = None,
) -> list[float]:
    """Return seconds per operation, one number for each batch. The search for a batch size is the uncounted warm-up."""
    count, spent_so_far = FIRST, 0.0
    while True:
        spent, _ = batch(count)
        spent_so_far += spent
        decision = share(next_count(count, spent, seconds, warm_up - spent_so_far))
        if decision["done"]:
            break
        count = decision["count"]
    times = []
    for _ in range(decision["batches"]):
        spent, operations = batch(repetitions or decision["count"])
        times.append(spent / operations)
    return times


def next_count(count: int, spent: float, seconds: float, cold: float = 0.0) -> dict[str, Any]:
    """Decide from one batch's time: search further for a good size, or take this one, unless more warm-up is needed.

    >>> next_count(4, 1e-6, 0.3)
    {'done': False, 'count': 64}
    >>> next_count(64, 0.01, 0.3, cold=0.1)
    {'done': False, 'count': 128}
    >>> next_count(64, 0.01, 0.3)
    {'done': True, 'count': 128, 'batches': 15}
    >>> next_count(4, 4.0, 0.3)
    {'done': True, 'count': 1, 'batches': 3}
    """
    aim = seconds / BATCHES
    if spent < aim / 4 and count < MOST:
        return {"done": False, "count": min(count * 16, MOST)}
    fitting = max(1, min(MOST, round(count * aim / max(spent, 1e-9))))
    if cold > 0 and spent > 0:
        return {"done": False, "count": fitting}
    batches = BATCHES if spent / count * fitting < 2 * aim else 3
    return {"done": True, "count": fitting, "batches": batches}


if __name__ == "__main__":
    main()
