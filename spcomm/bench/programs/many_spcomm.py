# SPDX-License-Identifier: MIT
"""Pairs of nodes exchange small messages for some seconds, as fast as they can. Command line: as the driver's."""

import json
import os
import sys
from functools import cache
from pathlib import Path
from time import monotonic

import numpy as np
from payload import check

import spcomm

TOGETHER = 8  # messages that a node sends before it receives as many
BYTES = 64
SERVER = "spcomm server"


def message(comm, count, seconds):
    """Return seconds for each message of one node, on average."""
    counts = received(comm, seconds)
    return count * seconds * len(counts) / max(1, sum(counts))


def slowest_message(comm, count, seconds):
    """Return the same for the node that got the fewest."""
    return count * seconds / max(1, min(received(comm, seconds)))


def server_memory(comm, count, seconds):
    """Return bytes, at the worst moment."""
    received(comm, seconds)
    return count * peak_bytes(server()) if comm.rank == 0 else 0


@cache
def received(comm, seconds):
    """Return the number of messages of each node. All nodes call it."""
    pairs = comm.size // 2
    other, got = comm.rank ^ 1, 0
    source = np.zeros(BYTES, np.uint8)
    comm.barrier()
    end = monotonic() + seconds
    goes = comm.rank // 2 < pairs
    while goes:
        source[0] = monotonic() < end
        for _ in range(TOGETHER):
            comm.send(source, other)
        for _ in range(TOGETHER):
            array = comm.recv(other)
            check(len(array) == BYTES, array, source)
            goes = goes and bool(source[0]) and bool(array[0])
        got += TOGETHER
    counts = comm.gather(got)
    return tuple(counts[: 2 * pairs]) if comm.rank == 0 else (1,)


def server():
    """Return the process of the run's server: a child of the launcher, from which this node descends."""
    above = [os.getppid()]
    while above[-1] > 1:
        above.append(identity(Path("/proc", str(above[-1])))[1])
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            name, parent = identity(folder)
            if name == SERVER and parent in above:
                return int(folder.name)
    raise AssertionError(f"no child {SERVER!r} of any of {above}")


def identity(folder):
    """Return name and parent; ("", 0): it has just ended."""
    try:
        name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        return name, int(rest.split()[1])
    except OSError:
        return "", 0


def peak_bytes(number):
    lines = Path(f"/proc/{number}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def main(comm, works):
    """Report each figure once, from the same exchange."""
    path, orders = sys.argv[1], json.loads(sys.argv[3])
    known = {work.__name__: work for work in works}
    results = {order["key"]: [known[order["work"]](comm, 1, **order["parameters"])] for order in orders}
    if comm.rank == 0:
        Path(path).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main(spcomm.startup(), [message, slowest_message, server_memory])
