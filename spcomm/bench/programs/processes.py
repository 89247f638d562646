# SPDX-License-Identifier: MIT
"""Nodes for libraries that have no launcher: forks them, connects each with node 0, and runs the sweep's operations.

``processes.py [--tcp] -n N sweep_<library>.py RESULTS SECONDS ORDERS``. That module has `prepare`, which is called
once for each connection before the fork, and `connect`, which both of its ends call after it.
"""

import multiprocessing
import os
import pickle
import runpy
import sys
from time import perf_counter

import driver
from payload import buffers, check_mark, marked


class Comm:
    """The nodes: `links` has node 0's connection to each other one, or this node's to node 0."""

    def __init__(self, rank, size, links, meet):
        self.rank, self.size, self.links, self.meet = rank, size, links, meet


def share(comm, value):
    """Node 0's object, on every node."""
    if comm.rank:
        return pickle.loads(comm.links[0].recv())
    for link in comm.links.values():
        link.send(pickle.dumps(value))
    return value


def one_way(comm, count, size, cold):
    """Node 0 sends messages to node 1, which acknowledges the last one (Gonzalez 2000, figure 6)."""
    arrays, link = buffers(size, cold), comm.links.get(1 - comm.rank)
    begin = perf_counter()
    if comm.rank == 0:
        for _ in range(count - 1):
            link.send(next(arrays))
        link.send(marked(next(arrays), count))
        link.recv()
    elif comm.rank == 1:
        for _ in range(count):
            link.recv_into(received := next(arrays))
        link.send(b"all")
        check_mark(received, count)
    return count, perf_counter() - begin


def pingpong(comm, count, size, cold):
    """Half a round trip between nodes 0 and 1 (Gonzalez 2000, figure 7)."""
    arrays, link = buffers(size, cold), comm.links.get(1 - comm.rank)
    begin = perf_counter()
    if comm.rank == 0:
        for _ in range(count - 1):
            link.send(next(arrays))
            link.recv_into(next(arrays))
        link.send(marked(next(arrays), count))
        link.recv_into(received := next(arrays))
        check_mark(received, count)
    elif comm.rank == 1:
        for _ in range(count):
            link.recv_into(received := next(arrays))
            link.send(received)
    return 2 * count, perf_counter() - begin


def barrier(comm, count):
    """All nodes meet."""
    begin = perf_counter()
    for _ in range(count):
        comm.meet()
    return count, perf_counter() - begin


def run(rank, size, ends, connect, meet):
    """One node."""
    if rank == 0:
        links = {other: connect(end, True) for other, end in ends.items()}
    else:
        links = {0: connect(ends[rank], False)}
    driver.main(Comm(rank, size, links, meet), share, globals())
    for link in links.values():
        link.close()  # the other end may not have the last message yet


def main():
    words = sys.argv[1:]
    is_tcp = words[0] == "--tcp"
    size, script = int(words[is_tcp + 1]), words[is_tcp + 2]
    sys.argv = words[is_tcp + 2 :]
    library = runpy.run_path(script)
    context = multiprocessing.get_context("fork")
    ends = {other: library["prepare"](is_tcp) for other in range(1, size)}
    meet = context.Barrier(size).wait
    others = [
        context.Process(target=run, args=(rank, size, ends, library["connect"], meet), daemon=True)
        for rank in range(1, size)
    ]
    for process in others:
        process.start()
    run(0, size, ends, library["connect"], meet)
    for process in others:
        process.join()
    sys.stdout.flush()
    os._exit(max((process.exitcode or 0 for process in others), default=0))


if __name__ == "__main__":
    main()
