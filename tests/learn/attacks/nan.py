# SPDX-License-Identifier: MIT
# wrong: node 0 returned nan; expected
def solve(comm, items):
    return float("nan")
