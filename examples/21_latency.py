# SPDX-License-Identifier: MIT
"""How long does a message take? The first and the last node play ping-pong, and halve the time of a round trip.

    spcomm run -n 2 21_latency.py [ROUNDS]

Look: short messages all cost the same, the *latency*; the cost of long ones grows with length, by the *bandwidth*.
Try: `--boxes 2`: over a network. Why does it show the median, not the mean? `spcomm bench pingpong` measures better.
"""

import sys
from statistics import median
from time import perf_counter

import numpy as np

import spcomm

SIZES = [8, 512, 32_768, 2_097_152]  # bytes
comm = spcomm.startup()
rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
other = comm.size - 1  # alone, a node sends to itself


def ping(ball, into):
    """One message there and back: seconds."""
    begin = perf_counter()
    comm.send(ball, other)
    comm.recv(other, out=into)
    return perf_counter() - begin


for size in SIZES:
    ball, back = np.arange(size, dtype=np.uint8), np.empty(size, np.uint8)
    comm.barrier()
    if comm.rank == 0:
        half = median(ping(ball, back) for _ in range(rounds)) / (2 if other else 1)
        print(f"{size:8d} bytes: {half * 1e6:9.2f} µs, {size / half / 1e6:8.0f} MB/s")
        if not np.array_equal(ball, back):
            raise SystemExit("wrong: what came back is not what was sent")
    elif comm.rank == other:
        for _ in range(rounds):
            comm.send(comm.recv(0, out=back), 0)
    comm.barrier()
if comm.rank == 0:
    print("checked: all messages came back as they were")
