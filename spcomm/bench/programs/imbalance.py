# SPDX-License-Identifier: MIT
"""Prints the load imbalance that a trace shows: 0.01 is one per cent.

A program of its own, because traces are replayed under models of measurements: `spcomm.bench` imports no traces.
"""

import sys

from spcomm.trace import reader, summary

print(summary.summarize(reader.read(sys.argv[1])).imbalance)
