# SPDX-License-Identifier: MIT
# right
import spcomm


def solve(comm, items):
    print("adding", len(items), "numbers", end="")
    return comm.allreduce(sum(items[comm.rank :: comm.size]), spcomm.SUM)
