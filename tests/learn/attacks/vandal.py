# SPDX-License-Identifier: MIT
# wrong: (2 nodes)
# It writes to everything that is open, the memory that it shares with the launcher, too.
import os


def solve(comm, items):
    for fd in range(3, 256):
        try:
            os.write(fd, b"\xff" * 8192)
        except OSError:
            pass
    return 0
