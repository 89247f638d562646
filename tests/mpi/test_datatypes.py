# SPDX-License-Identifier: MIT
"""Datatypes."""

import pytest


@pytest.mark.parametrize("nodes", (1, 2, 3))
def test_an_operator_may_ask_about_a_freed_datatype(c_program, nodes):
    result = c_program("freed_type.c", nodes)
    assert result.code == 0 and result.err == "", result
