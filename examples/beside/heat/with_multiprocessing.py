# SPDX-License-Identifier: MIT
"""Heat in a rod, all processes write into one shared array: python with_multiprocessing.py 4"""

import sys
from multiprocessing import Barrier, Process
from multiprocessing.sharedctypes import RawArray

import numpy as np

CELLS, STEPS = 240, 50


def compute(rank, size, memory, barrier):
    rod = np.frombuffer(memory)  # all of it, in memory that all processes see
    first, last = rank * CELLS // size, (rank + 1) * CELLS // size
    for _ in range(STEPS):
        u = rod[first : last + 2].copy()
        barrier.wait()  # nobody writes before all have read
        rod[first + 1 : last + 1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
        barrier.wait()  # nobody reads before all have written


if __name__ == "__main__":
    size = int(sys.argv[1])
    memory, barrier = RawArray("d", CELLS + 2), Barrier(size)
    memory[0] = 100.0
    processes = [Process(target=compute, args=(rank, size, memory, barrier)) for rank in range(size)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print(f"{sum(memory[1:-1]):.6f} degrees in all cells together")
