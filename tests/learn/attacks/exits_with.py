# SPDX-License-Identifier: MIT
# wrong: exit code 3
import sys


def solve(comm, items):
    sys.exit(3)
