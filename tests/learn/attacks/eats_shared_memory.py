# SPDX-License-Identifier: MIT
# wrong: the program used more than 300 MiB of memory, all nodes together (2 nodes)
# Shared pages, which no limit of a single process counts; at most 600 MiB.
import mmap
import time


def solve(comm, items):
    pages = mmap.mmap(-1, 300 << 20)
    for at in range(0, len(pages), 4096):
        pages[at] = 1
    time.sleep(8)
    return sum(items)
