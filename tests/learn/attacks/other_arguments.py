# SPDX-License-Identifier: MIT
# wrong: node 0 cannot call solve(comm, items) of other_arguments.py: missing a required argument: 'numbers' (2 nodes)
def solve(comm, numbers):
    return sum(numbers)
