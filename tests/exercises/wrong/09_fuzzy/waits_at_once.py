# says: with a fuzzy barrier it would be
# SPDX-License-Identifier: MIT
"""A fuzzy barrier with nothing in it is a plain one."""


def solve(comm, parts, own, use):
    for part, alone, together in zip(parts, own, use, strict=True):
        comm.work(part)
        comm.fuzzy_barrier().wait()
        comm.work(alone)
        comm.work(together)
