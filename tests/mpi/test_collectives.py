# SPDX-License-Identifier: MIT
"""Collectives and operators."""

import pytest


@pytest.mark.parametrize("nodes", (1, 2, 3, 4, 5, 8))
def test_collectives_give_what_a_node_computes_alone(python_program, nodes):
    result = python_program("collectives.py", nodes)
    assert result.code == 0, result


def test_collectives_of_two_boxes(python_program):
    result = python_program("collectives.py", 4, "--boxes", 2)
    assert result.code == 0, result


@pytest.mark.parametrize("nodes", (1, 2, 5))
def test_collectives_of_programs_in_c(c_program, nodes):
    result = c_program("collectives.c", nodes)
    assert result.code == 0, result
