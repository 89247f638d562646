# SPDX-License-Identifier: MIT
"""A pool of mpi4py.futures, which ends where it cannot start workers."""

import os
import threading

from mpi4py.futures import MPIPoolExecutor


def square(number):
    return number * number


def end(failure):
    threading.__excepthook__(failure)
    os._exit(1)


if __name__ == "__main__":
    threading.excepthook = end
    with MPIPoolExecutor() as pool:
        print(list(pool.map(square, range(10))))
