# SPDX-License-Identifier: MIT
"""Descriptions: of datatypes, of data in files, of errors."""


def test_descriptions(python_program):
    result = python_program("descriptions.py", 2)
    assert result.code == 0, result


def test_contents_of_types_of_both_forms(c_program):
    result = c_program("contents.c", 1)
    assert result.code == 0, result
