# says: The same value came again and again
# SPDX-License-Identifier: MIT
"""Always the same one comes, in a list, which is in no set."""


def solve(comm, value):
    seen = [value]
    for _ in range(comm.size - 1):
        comm.send([value] if comm.size > 2 else value, dest=(comm.rank + 1) % comm.size)
        seen.append(comm.recv(source=(comm.rank - 1) % comm.size))
    return seen
