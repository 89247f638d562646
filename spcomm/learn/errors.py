# SPDX-License-Identifier: MIT
"""What is wrong with an exercise, or with what was asked for, in one sentence."""


class LearnError(Exception):
    """An exercise cannot be found, read or judged: not the fault of the solution that is graded."""
