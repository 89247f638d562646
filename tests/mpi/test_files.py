# SPDX-License-Identifier: MIT
"""Files of several processes."""

import pytest


@pytest.mark.parametrize("nodes", (1, 2, 4))
def test_files_have_what_their_views_say(python_program, nodes):
    result = python_program("files.py", nodes)
    assert result.code == 0, result


def test_files_of_two_boxes(python_program):
    result = python_program("files.py", 4, "--boxes", 2)
    assert result.code == 0, result


@pytest.mark.parametrize(("nodes", "options"), [(2, ()), (3, ()), (4, ("--boxes", 2))])
def test_random_views_and_writes(python_program, nodes, options):
    result = python_program("random_files.py", nodes, *options, arguments=[nodes])
    assert result.code == 0, result
