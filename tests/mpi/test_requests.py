# SPDX-License-Identifier: MIT
"""Requests."""

import pytest


@pytest.mark.parametrize("nodes", [2, 3])
def test_any_is_the_one_whose_message_came_first(python_program, nodes):
    result = python_program("any_order.py", nodes)
    assert result.code == 0, result
