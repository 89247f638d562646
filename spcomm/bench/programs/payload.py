# SPDX-License-Identifier: MIT
"""Work on payloads that is the same for every contender."""

from functools import lru_cache
from itertools import cycle

import numpy as np

LINE = 64  # bytes of a cache line
COLD_BYTES = 64 << 20  # more than most third-level caches
MOST_COLD = 1 << 15  # buffers; of one line each they fill two mebibytes, as much as most second-level caches


def check(right, received, sent):
    if not right:
        raise AssertionError(f"sent {sent!r}, received {received!r}")


def look(received, read):
    """Read all of the received payload."""
    if read:
        received.max()


def write(array, value, everything):
    if everything:
        array.fill(value % 251)
    else:
        array[::4096] = value % 251


@lru_cache(maxsize=1)
def buffers(size, cold, doubles=False):
    """Return arrays to send from or to receive into, in turn, without end; they are kept for the next batch.

    Hot: always the same array. Cold: so many arrays that the next one has left the caches, or, if it is small, the
    second level of them.
    """
    apart = -(-size // LINE) * LINE
    count = 1
    if cold:
        count = max(2, min(MOST_COLD, COLD_BYTES // apart))
        apart = max(apart, COLD_BYTES // count // LINE * LINE)
    whole = np.empty(apart * count, np.uint8)
    whole.fill(0)  # each page is there before it is measured
    parts = [whole[first : first + size] for first in range(0, apart * count, apart)]
    return cycle([part.view(np.float64) for part in parts] if doubles else parts)


def marked(array, value):
    """Write the first and the last element, for `check_mark` at the other end."""
    array[0] = array[-1] = value % 251
    return array


def check_mark(received, value):
    check(received[0] == received[-1] == value % 251, received, value % 251)


def one_copy(comm, count, size):
    """An array of `size` bytes written anew and copied, by node 0 alone: the floor of any message."""
    source, target = np.empty(size, np.uint8), np.empty(size, np.uint8)
    for value in range(count if comm.rank == 0 else 0):
        source.fill(value % 251)
        np.copyto(target, source)
        check(target[-1] == value % 251, target, value)
    return count
