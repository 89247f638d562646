# SPDX-License-Identifier: MIT
"""Two nodes exchange messages while the last one is stopped, or waits like the others."""

import os
import signal
from pathlib import Path
from time import perf_counter

import driver
import numpy as np
from payload import check
from works_spcomm import share

import spcomm

UNREAD = 64  # messages that the last node does not read meanwhile


def is_stopped(number):
    return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def exchange(comm, count, size, stops):
    """Arrays of `size` bytes between nodes 0 and 1, while the last one is stopped, or waits."""
    last, spent = comm.size - 1, 0.0
    if comm.rank == last:
        comm.send(os.getpid(), 0)
        if stops:
            os.kill(os.getpid(), signal.SIGSTOP)
        for _ in range(UNREAD):
            comm.recv(1)
        comm.recv(0)
    elif comm.rank == 0:
        number = comm.recv(last)
        while stops and not is_stopped(number):
            os.sched_yield()
        comm.send(None, 1)
        try:
            spent = pingpong(comm, count, size, 1)
        finally:
            os.kill(number, signal.SIGCONT)
        comm.send(None, last)
    elif comm.rank == 1:
        comm.recv(0)
        for value in range(UNREAD):
            comm.send(np.full(1 << 10, value % 251, np.uint8), last)
        pingpong(comm, count, size, 0)
    return 2 * count, spent


def pingpong(comm, count, size, other):
    """Seconds."""
    source, begin = np.zeros(size, np.uint8), perf_counter()
    for value in range(count):
        if comm.rank == 0:
            source[0] = source[-1] = value % 251
            comm.send(source, other)
        received = comm.recv(other)
        if comm.rank == 1:
            comm.send(received, other)
        else:
            check(received[0] == received[-1] == value % 251, received, value)
    return perf_counter() - begin


if __name__ == "__main__":
    driver.main(spcomm.startup(), share, globals())
