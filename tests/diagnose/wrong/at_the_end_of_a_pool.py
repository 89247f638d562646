# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""The program has ended, and Python waits for the one thread of its pool."""

from concurrent.futures import ThreadPoolExecutor

import spcomm

comm = spcomm.startup()


def work():
    return comm.recv(1 - comm.rank)  # <- node 0: recv(source=1, …) | node 1: recv(source=0, …) in work


ThreadPoolExecutor(1).submit(work)
