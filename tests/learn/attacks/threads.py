# SPDX-License-Identifier: MIT
# right
# A daemon thread that prints all the time keeps nothing from coming out whole.
import sys
import threading
import time


def solve(comm, items):
    def talk():
        while True:
            sys.stdout.write("...")
            sys.stdout.flush()
            time.sleep(0.001)

    threading.Thread(target=talk, daemon=True).start()
    return comm.allreduce(sum(items)) // comm.size
