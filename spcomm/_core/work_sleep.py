# SPDX-License-Identifier: MIT
"""Sleep of declared work, in its own Python frame, which identifies it in a stack trace."""

from time import monotonic, sleep

LONGEST_S = 1e6  # at a time: clocks cannot represent a much later moment


def pass_time(seconds: float) -> None:
    """Sleep; it holds no lock, and an interruption ends it."""
    end = monotonic() + seconds
    left = seconds
    while left > 0:
        sleep(min(left, LONGEST_S))
        left = end - monotonic()
