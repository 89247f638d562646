# says: there were 0 messages
# SPDX-License-Identifier: MIT
"""Uses a collective in place of the ring."""


def solve(comm, value):
    values = comm.allgather(value)
    return [values[(comm.rank - step) % comm.size] for step in range(comm.size)]
