# SPDX-License-Identifier: MIT
# wrong: the program did not finish within
# also: was at loop.py:
# also: loop.py:
# also: took longer than --timeout
import signal


def solve(comm, items):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        pass
