# SPDX-License-Identifier: MIT
# wrong: raised ValueError: �[2J�]0;owned
def solve(comm, items):
    raise ValueError("\x1b[2J\x1b]0;owned\x07")
