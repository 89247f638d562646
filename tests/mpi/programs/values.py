# SPDX-License-Identifier: MIT
"""Values that nodes give in collectives, and that each node combines alone."""

import numpy as np


def given(node, count=3, dtype="i"):
    return (np.arange(count) * 7 + node * 10 + 1).astype(dtype)


def expect(found, wanted):
    assert np.array_equal(found, wanted), (found, wanted)


def matrix(node):
    """Products of these depend on their order."""
    return np.array([[1, node + 1], [0 if node % 2 else 1, 1]], dtype="q")


def multiply(left, right, datatype):
    x = np.frombuffer(left, dtype="q").reshape(-1, 2, 2)
    y = np.frombuffer(right, dtype="q").reshape(-1, 2, 2)
    y[:] = x @ y


def product(nodes):
    total = np.eye(2, dtype="q")
    for node in nodes:
        total = total @ matrix(node)
    return total
