# SPDX-License-Identifier: MIT
"""Descriptions: of datatypes, of data in files, of errors."""


def test_descriptions(python_program):
    result = python_program("descriptions.py", 2)
    assert result.code == 0, result
