# SPDX-License-Identifier: MIT
"""Communicators."""


def test_a_loop_that_duplicates_and_frees_never_ends_for_lack_of_numbers(python_program):
    result = python_program("duplicates.py", 2)
    assert result.code == 0, result
