# SPDX-License-Identifier: MIT
# wrong: the program printed more than 64 KiB: does it print in a loop without end? (2 nodes)
import sys


def solve(comm, items):
    for _ in range(1024):
        sys.stdout.write("x" * (1 << 20))
    return comm.allreduce(sum(items)) // comm.size
