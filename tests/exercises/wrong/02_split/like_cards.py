# says: the parts are no blocks
# SPDX-License-Identifier: MIT
"""Deals the items like cards."""


def solve(comm, items):
    return items[comm.rank :: comm.size]
