# SPDX-License-Identifier: MIT
"""Datatypes."""

import pytest


@pytest.mark.parametrize("seed", (1, 2, 3))
def test_random_types_move_the_bytes_of_their_definition(c_program, seed):
    result = c_program("random_types.c", 1, arguments=[seed])
    assert result.code == 0 and int(result.lines[-1]) > 150, result
