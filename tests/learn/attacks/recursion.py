# SPDX-License-Identifier: MIT
# wrong: raised RecursionError: maximum recursion depth exceeded
# also: recursion.py:5, in solve: return solve(comm, items) + 1
def solve(comm, items):
    return solve(comm, items) + 1
