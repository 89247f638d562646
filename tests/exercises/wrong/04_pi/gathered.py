# says: node 0 called gather
# SPDX-License-Identifier: MIT
"""Node 0 adds up what it has gathered."""


def area(comm, strip, strips):
    comm.work(1)
    x = (strip + 0.5) / strips
    return 4.0 / (1.0 + x * x) / strips


def solve(comm, strips):
    part = sum((area(comm, strip, strips) for strip in range(comm.rank, strips, comm.size)), 0.0)
    parts = comm.gather(part)
    return comm.bcast(sum(parts) if comm.rank == 0 else None)
