# says: its share is one list of numbers
# SPDX-License-Identifier: MIT
"""The pieces that came are not put together."""


def solve(comm, mine):
    return comm.alltoall([sorted(mine)] * comm.size)
