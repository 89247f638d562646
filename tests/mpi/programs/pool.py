# SPDX-License-Identifier: MIT
"""A pool of mpi4py.futures."""

from mpi4py.futures import MPIPoolExecutor


def square(number):
    return number * number


if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        print(list(pool.map(square, range(10))))
