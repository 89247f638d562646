# SPDX-License-Identifier: MIT
# wrong: node 1 ended without returning from solve() (sys.exit, os._exit?); node 0 raised spcomm.NodeLostError
import os


def solve(comm, items):
    if comm.rank == 1:
        os._exit(0)
    return comm.allreduce(sum(items)) // comm.size
