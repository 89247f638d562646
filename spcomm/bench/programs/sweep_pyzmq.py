# SPDX-License-Identifier: MIT
"""Connections of pyzmq for `processes.py`: PAIR sockets over a Unix socket, or over TCP on this machine."""

from multiprocessing import Pipe

import numpy as np
import zmq


def prepare(is_tcp):
    """Return the address to bind to, and a pipe that tells where that was."""
    return "tcp://127.0.0.1:*" if is_tcp else "ipc://*", Pipe()


class Link:
    """One end of a connection."""

    def __init__(self, socket):
        self.socket, self.send, self.recv = socket, socket.send, socket.recv

    def recv_into(self, array):
        array[:] = np.frombuffer(self.socket.recv(copy=False), np.uint8)

    def close(self):
        self.socket.close()
        self.socket.context.term()  # waits until all is sent


def connect(end, is_first):
    address, pipe = end
    socket = zmq.Context().socket(zmq.PAIR)
    socket.hwm = 1000
    if is_first:
        socket.bind(address)
        pipe[0].send(socket.last_endpoint.decode())
    else:
        socket.connect(pipe[1].recv())
    return Link(socket)
