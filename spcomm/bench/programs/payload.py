# SPDX-License-Identifier: MIT
"""Work on payloads that is the same for every contender."""


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
