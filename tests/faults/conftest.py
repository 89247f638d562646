# SPDX-License-Identifier: MIT
"""Nodes that die, stop or leave. Each test starts runs of its own (programs.py)."""
