# SPDX-License-Identifier: MIT
"""Communicators."""


def test_a_loop_that_duplicates_and_frees_never_ends_for_lack_of_numbers(python_program):
    result = python_program("duplicates.py", 2)
    assert result.code == 0, result


def test_without_an_arena_the_option_is_named(python_program):
    result = python_program("duplicates.py", 2, "--arena", 0)
    assert result.code == 1 and "start with a larger --arena" in result.err, result
