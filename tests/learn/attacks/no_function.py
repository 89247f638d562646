# SPDX-License-Identifier: MIT
# wrong: node 0 found no function solve(comm, items) in no_function.py (2 nodes)
def sovle(comm, items):
    return sum(items)
