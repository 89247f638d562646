# SPDX-License-Identifier: MIT
"""Declared work sleeps here, in a frame of Python's, by which a look at the stack knows it."""

from time import monotonic, sleep

LONGEST_S = 1e6  # at a time: no clock has a moment that is much later


def pass_time(seconds: float) -> None:
    """`sleep` holds nothing, and an interruption ends it."""
    end = monotonic() + seconds
    left = seconds
    while left > 0:
        sleep(min(left, LONGEST_S))
        left = end - monotonic()
