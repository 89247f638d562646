# SPDX-License-Identifier: MIT
"""Nodes for libraries that have no launcher: forks them, connects each with node 0, and runs the sweep's operations.

``processes.py [--tcp] -n N LIBRARY PROGRAM RESULTS SECONDS ORDERS``. A library has `prepare`, which is called once for
each connection before the fork, and `connect`, which both of its ends call after it: `Pipes` or `Sockets`.
"""

import multiprocessing
import os
import pickle
import sys
from time import perf_counter

import driver
import numpy as np
from payload import buffers, check_mark, marked


class Pipes:
    """Connections of `multiprocessing`: pipes."""

    def prepare(self, is_tcp):
        if is_tcp:
            raise ValueError("pipes do not use TCP")
        return multiprocessing.Pipe()

    def connect(self, ends, is_first):
        return Pipe(ends[0 if is_first else 1])


class Pipe:
    """One end of a connection."""

    def __init__(self, connection):
        self.send, self.recv = connection.send_bytes, connection.recv_bytes
        self.recv_into, self.close = connection.recv_bytes_into, connection.close


class Sockets:
    """Connections of pyzmq: PAIR sockets over a Unix socket, or over TCP on this machine."""

    def prepare(self, is_tcp):
        """Return the address to bind to, and a pipe that tells where that was."""
        return "tcp://127.0.0.1:*" if is_tcp else "ipc://*", multiprocessing.Pipe()

    def connect(self, end, is_first):
        import zmq

        address, pipe = end
        socket = zmq.Context().socket(zmq.PAIR)
        socket.hwm = 1000
        if is_first:
            socket.bind(address)
            pipe[0].send(socket.last_endpoint.decode())
        else:
            socket.connect(pipe[1].recv())
        return Socket(socket)


class Socket:
    """One end of a connection."""

    def __init__(self, socket):
        self.socket, self.send, self.recv = socket, socket.send, socket.recv

    def recv_into(self, array):
        array[:] = np.frombuffer(self.socket.recv(copy=False), np.uint8)

    def close(self):
        self.socket.close()
        self.socket.context.term()  # waits until all is sent


LIBRARIES = {"multiprocessing": Pipes(), "pyzmq": Sockets()}


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


def sweep_one_way(comm, count, size, cold):
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


def sweep_pingpong(comm, count, size, cold):
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


def sweep_barrier(comm, count):
    """All nodes meet."""
    begin = perf_counter()
    for _ in range(count):
        comm.meet()
    return count, perf_counter() - begin


def run(rank, size, ends, connect, meet, arguments):
    """One node."""
    if rank == 0:
        links = {other: connect(end, True) for other, end in ends.items()}
    else:
        links = {0: connect(ends[rank], False)}
    driver.run(Comm(rank, size, links, meet), globals(), *arguments)
    for link in links.values():
        link.close()  # the other end may not have the last message yet


def main():
    words = sys.argv[1:]
    is_tcp = words[0] == "--tcp"
    size, name, *arguments = words[is_tcp + 1 :]
    size, library = int(size), LIBRARIES[name]
    context = multiprocessing.get_context("fork")
    ends = {other: library.prepare(is_tcp) for other in range(1, size)}
    meet = context.Barrier(size).wait
    nodes = [(rank, size, ends, library.connect, meet, arguments) for rank in range(size)]
    others = [context.Process(target=run, args=node, daemon=True) for node in nodes[1:]]
    for process in others:
        process.start()
    run(*nodes[0])
    for process in others:
        process.join()
    sys.stdout.flush()
    os._exit(max((process.exitcode or 0 for process in others), default=0))


if __name__ == "__main__":
    main()
