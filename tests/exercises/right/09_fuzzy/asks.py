# SPDX-License-Identifier: MIT
"""Asks for the end of the barrier, and does not wait for it."""


def solve(comm, parts, own, use):
    for part, alone, together in zip(parts, own, use, strict=True):
        comm.work(part)
        barrier = comm.fuzzy_barrier()
        comm.work(alone)
        while not barrier.done():
            pass
        comm.work(together)
