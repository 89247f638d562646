# SPDX-License-Identifier: MIT
"""The works with NumPy's numbers on one node, which need no communication: only spcomm has its own kinds of them."""

from functools import cache

import driver
import numpy as np
from works_spcomm import check, share

import spcomm


@cache  # made while the clock warms up, and kept
def numbers(dtype, length):
    """Return a thousand different ones, from 0 on; `dtype` is the name of NumPy's or of spcomm's."""
    return (np.arange(length) % 1000).astype(getattr(spcomm, dtype, dtype))


def sum_elements(comm, count, dtype, length):
    """Read all of an array."""
    if comm.rank == 0:
        array = numbers(dtype, length)
        for _ in range(count):
            total = array.sum()
        check(total == length // 1000 * 499_500, total, dtype)
    return count


def read_elements(comm, count, dtype, length):
    """Read one element repeatedly, a thousand times for each count."""
    if comm.rank == 0:
        array = numbers(dtype, length)
        for _ in range(count):
            for _index in range(1000):
                found = array[77_777]
        check(found == 777, found, dtype)
    return 1000 * count


if __name__ == "__main__":
    driver.main(spcomm.startup(), share, globals())
