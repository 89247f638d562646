# SPDX-License-Identifier: MIT
"""Connections of `multiprocessing` for `processes.py`: pipes."""

from multiprocessing import Pipe


def prepare(is_tcp):
    if is_tcp:
        raise ValueError("pipes do not use TCP")
    return Pipe()


class Link:
    """One end of a connection."""

    def __init__(self, connection):
        self.send, self.recv = connection.send_bytes, connection.recv_bytes
        self.recv_into, self.close = connection.recv_bytes_into, connection.close


def connect(ends, is_first):
    return Link(ends[0 if is_first else 1])
