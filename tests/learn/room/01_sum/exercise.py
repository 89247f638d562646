# SPDX-License-Identifier: MIT
"""The exercise of the judge's own tests: add some numbers with one allreduce."""


def solve(comm, items):
    """Return the sum of all items on each node."""
    # TODO
    return None
