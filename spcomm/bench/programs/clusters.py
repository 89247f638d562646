# SPDX-License-Identifier: MIT
"""Nodes for a notebook: the time of their start, and of a call of all of them. Argument: whose, how many, seconds.

Prints JSON: ``start``, seconds from nothing to the results of the first call; ``call``, seconds of each later one.
"""

import json
import multiprocessing
import sys
from contextlib import contextmanager
from time import monotonic, perf_counter

LEAST = 5  # calls


def answer(rank):
    """The work of every node, in each call."""
    return rank * rank


@contextmanager
def spcomm(nodes):
    """`Cluster.run`."""
    from spcomm import Cluster

    with Cluster(nodes) as cluster:
        yield lambda: cluster.run(lambda comm: answer(comm.rank))


@contextmanager
def pool(nodes):
    """`multiprocessing.Pool`: one item for each process, in an arbitrary assignment."""
    with multiprocessing.Pool(nodes) as processes:
        yield lambda: processes.map(answer, range(nodes), 1)


@contextmanager
def ipyparallel(nodes):
    """A cluster of this machine, with its controller and as many engines."""
    import logging

    import ipyparallel

    with ipyparallel.Cluster(n=nodes, log_level=logging.ERROR, send_engines_connection_env=False) as client:
        view = client[:]
        yield lambda: view.map_sync(answer, range(nodes))


def measure(whose, nodes, seconds):
    expected = [answer(rank) for rank in range(nodes)]
    begin = perf_counter()
    with globals()[whose](nodes) as call:
        assert call() == expected
        start, calls, end = perf_counter() - begin, [], monotonic() + seconds
        while len(calls) < LEAST or monotonic() < end:
            begin = perf_counter()
            assert call() == expected
            calls.append(perf_counter() - begin)
    return {"start": [start], "call": calls}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
