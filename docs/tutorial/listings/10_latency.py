# SPDX-License-Identifier: MIT
"""The time that a message of n bytes takes: about latency + n / bandwidth."""

import numpy as np

import spcomm

comm = spcomm.startup()


def one_way(length, rounds):
    """The least of five measurements: what disturbs only ever makes it slower."""
    payload = np.zeros(length, np.uint8)
    best = float("inf")
    for _ in range(5):
        comm.barrier()
        begin = comm.time()
        for _ in range(rounds):
            if comm.rank == 0:
                comm.send(payload, dest=1)
                comm.recv(source=1)
            elif comm.rank == 1:
                comm.recv(source=0)
                comm.send(payload, dest=0)
        best = min(best, (comm.time() - begin) / (2 * rounds))
    return best


sizes = [1, 1024, 2**15, 2**20, 2**23]
times = [one_way(length, max(4, min(500, 2**22 // length))) for length in sizes]
if comm.rank == 0:
    for length, seconds in zip(sizes, times, strict=True):
        print(f"{length:8d} bytes: {seconds * 1e6:.1f} µs")
    latency, bandwidth = times[0], sizes[-1] / times[-1]
    print(f"latency {latency * 1e6:.1f} µs, bandwidth {bandwidth / 1e9:.1f} GB/s")
