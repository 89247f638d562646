# SPDX-License-Identifier: MIT
"""Windows."""

import pytest


@pytest.mark.parametrize("nodes", (1, 2, 4))
def test_concurrent_operations_leave_what_they_leave_one_after_another(python_program, nodes):
    result = python_program("windows.py", nodes)
    assert result.code == 0, result


def test_a_window_over_boxes_is_refused_in_one_sentence(python_program):
    result = python_program("windows.py", 4, "--boxes", 2)
    assert result.code != 0, result
    assert "rank 2 is in another box than rank 0" in result.err, result


def test_a_wait_for_a_lock_names_its_holder(python_program):
    result = python_program("window_deadlock.py", 2)
    assert "Win_lock(rank=0), held by node 1" in result.err, result


@pytest.mark.parametrize("nodes", (1, 3))
def test_windows_of_programs_in_c(c_program, nodes):
    result = c_program("windows.c", nodes)
    assert result.code == 0, result


@pytest.mark.parametrize("nodes", (2, 3, 4))
def test_random_operations_leave_what_their_sequence_says(python_program, nodes):
    result = python_program("random_windows.py", nodes, arguments=[nodes])
    assert result.code == 0, result


def test_a_window_that_cannot_be_made_takes_no_memory(python_program):
    """The arena has no room for rank 0's memory; then it has room for a small window as before."""
    result = python_program("window_refused.py", 2, "--arena", "64K")
    assert result.code == 0, result
