# SPDX-License-Identifier: MIT
# wrong: the program did not finish (2 nodes):
# also: loop.py:
# also: took longer than --timeout
import signal


def solve(comm, items):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        pass
