# says: SP10
# SPDX-License-Identifier: MIT
"""Only even nodes send."""


def solve(comm, value):
    right = (comm.rank + 1) % comm.size
    left = (comm.rank - 1) % comm.size
    if comm.rank % 2 == 0:
        comm.send(value, dest=right)
    return comm.recv(source=left)
