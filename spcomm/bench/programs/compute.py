# SPDX-License-Identifier: MIT
"""Computes until its parent, the process whose number is its argument, is gone or ends it."""

import os
import sys

parent = int(sys.argv[1])
while os.getppid() == parent:
    total = 0
    for number in range(100_000):
        total += number
