# SPDX-License-Identifier: MIT
# wrong: node 0 returned a value that is nested deeper than 40 levels, or contains itself (2 nodes)
def solve(comm, items):
    value = {}
    value["self"] = value
    return value
