# SPDX-License-Identifier: MIT
"""The benchmarks: one module each, found by listing this folder.

A module has a docstring, whose first line is its line in ``spcomm bench --help``, ``NODES``, the node counts it is
measured with by default, and ``rows(nodes)``, which declares the measurements (see `spcomm.bench.rows.Row`).
"""
