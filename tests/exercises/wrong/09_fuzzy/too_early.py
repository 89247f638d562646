# says: before it had done parts[0]
# SPDX-License-Identifier: MIT
"""Says that its part is there, and then begins it."""


def solve(comm, parts, own, use):
    for part, alone, together in zip(parts, own, use, strict=True):
        barrier = comm.fuzzy_barrier()
        comm.work(part)
        comm.work(alone)
        barrier.wait()
        comm.work(together)
