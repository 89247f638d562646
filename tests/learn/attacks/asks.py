# SPDX-License-Identifier: MIT
# wrong: raised EOFError: EOF when reading a line at asks.py:5, in solve:
# also: input("Your name? ")
def solve(comm, items):
    input("Your name? ")
    return sum(items)
