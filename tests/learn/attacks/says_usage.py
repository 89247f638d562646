# SPDX-License-Identifier: MIT
# wrong: ended with exit code 125
import sys


def solve(comm, items):
    print("spcomm run: --map 7: no such box", file=sys.stderr, flush=True)
    sys.exit(125)
