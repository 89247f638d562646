# SPDX-License-Identifier: MIT
# wrong: the program printed more than 64 KiB: does it print in a loop without end? (2 nodes)
def solve(comm, items):
    for number in range(20_000):
        print("line", number)
    return comm.allreduce(sum(items)) // comm.size
