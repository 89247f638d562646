# SPDX-License-Identifier: MIT
# wrong: node 0 returned more than once (does it fork?); it must return once
import os


def solve(comm, items):
    total = sum(items)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return total
