# SPDX-License-Identifier: MIT
"""An array of 32 MiB goes to and fro between two nodes: sent, and moved."""

import sys

import numpy as np

import spcomm

ROUNDS = 10

comm = spcomm.startup()
if comm.size != 2:
    sys.exit("this program is for two nodes: spcomm run -n 2")
other = 1 - comm.rank


def there_and_back(give):
    """Seconds of one way, and the array that came last."""
    a = comm.empty(4 * 2**20) if comm.rank == 0 else None
    if comm.rank == 0:
        a[:] = 1.0
    comm.barrier()
    begin = comm.time()
    for _ in range(ROUNDS):
        if comm.rank == 0:
            give(a, other)
            a = comm.recv()
        else:
            a = comm.recv()
            give(a, other)
    return (comm.time() - begin) / (2 * ROUNDS)


sent = there_and_back(comm.send)
moved = there_and_back(comm.move)
if comm.rank == 0:
    print(f"send: {sent * 1e3:.2f} ms")
    print(f"move: {moved * 1e3:.3f} ms")

a = comm.empty(3)
a[:] = 7.0
comm.move(a, other)
b = comm.recv()
print(f"node {comm.rank} has {a} left and got {b}")
b += comm.rank  # it is mine: I may write to it
assert np.all(b == 7.0 + comm.rank)
