# SPDX-License-Identifier: MIT
# wrong: raised SyntaxError
# also: at syntax_error.py:4: def solve(comm, items:
def solve(comm, items:
    return sum(items)
