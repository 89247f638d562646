# SPDX-License-Identifier: MIT
"""Computes until the process whose number is its argument, its parent, is gone or ends it."""

import os
import sys

parent = int(sys.argv[1])
while os.getppid() == parent:
    total = 0
    for number in range(100_000):
        total += number
