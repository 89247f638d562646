# SPDX-License-Identifier: MIT
"""The cost of an event of a trace: the difference between recorded work and the same work unrecorded."""

from time import perf_counter

import driver
from works_spcomm import share

import spcomm
from spcomm._core.comm import Comm
from spcomm._core.regions import Region


def call_events(comm, count):
    """Two events a call: one when it begins, one when it ends."""
    plain = Comm.poll  # of a traced run's `comm`, poll() is another one
    begin = perf_counter()
    for _ in range(count):
        plain(comm)
    middle = perf_counter()
    for _ in range(count):
        comm.poll()
    return 2 * count, difference(begin, middle, perf_counter())


def region_events(comm, count):
    """Two events a region. A region without a node costs the same as an ordinary `with`."""
    region, other = comm.region("work"), Region()
    begin = perf_counter()
    for _ in range(count):
        with other:
            pass
    middle = perf_counter()
    for _ in range(count):
        with region:
            pass
    return 2 * count, difference(begin, middle, perf_counter())


def difference(begin, middle, end):
    return max((end - middle) - (middle - begin), 1e-12)


if __name__ == "__main__":
    driver.main(spcomm.startup(), share, globals())
