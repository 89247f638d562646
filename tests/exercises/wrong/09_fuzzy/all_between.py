# says: before it had waited for the others
# SPDX-License-Identifier: MIT
"""Uses the parts of all before they are there."""


def solve(comm, parts, own, use):
    for part, alone, together in zip(parts, own, use, strict=True):
        comm.work(part)
        with comm.fuzzy_barrier():
            comm.work(alone)
            comm.work(together)
