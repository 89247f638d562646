# SPDX-License-Identifier: MIT
# wrong: node 0 returned
# It leaves processes behind: other sessions, no parents, deaf to signals. The test looks for them by their name.
import os
import signal
import sys


def solve(comm, items):
    begun, begins = os.pipe()  # closed when another program is begun
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
            for fd in range(3):
                os.dup2(os.open(os.devnull, os.O_RDWR), fd)
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)  # left behind"])
        os._exit(0)
    os.wait()
    os.close(begins)
    os.read(begun, 1)  # its end: nobody has the other one any more
    return 0
