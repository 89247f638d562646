# says: each piece is to be done once
# SPDX-License-Identifier: MIT
"""Makes it fast by not doing it."""


def solve(comm, parts, own, use):
    for part, together in zip(parts, use, strict=True):
        comm.work(part)
        comm.barrier()
        comm.work(together)
