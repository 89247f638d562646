# SPDX-License-Identifier: MIT
"""Sessions."""

import pytest


@pytest.mark.parametrize("arguments", [(), ("init",)])
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_program_of_sessions(c_program, nodes, arguments):
    result = c_program("sessions.c", nodes, arguments=arguments)
    assert (result.code, result.err) == (0, ""), result
