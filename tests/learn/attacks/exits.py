# SPDX-License-Identifier: MIT
# wrong: node 0 ended without returning from solve() (sys.exit, os._exit?) (2 nodes)
import sys


def solve(comm, items):
    sys.exit()
