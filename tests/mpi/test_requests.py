# SPDX-License-Identifier: MIT
"""Requests."""

import pytest


@pytest.mark.parametrize("nodes", [2, 3])
def test_any_is_the_one_whose_message_came_first(python_program, nodes):
    result = python_program("any_order.py", nodes)
    assert result.code == 0, result


@pytest.mark.parametrize("options", [(2,), (3,), (3, "--boxes", 2)], ids=["two", "three", "boxes"])
@pytest.mark.parametrize("order", ["all_at_once", "last_first"])
def test_any_number_of_synchronous_sends_may_be_open(python_program, options, order):
    result = python_program("many_issends.py", *options, arguments=[order])
    assert result.code == 0, result


def test_a_synchronous_send_among_many_that_nobody_receives_is_reported(python_program):
    result = python_program("many_issends.py", 2, arguments=["never_received"])
    assert result.code != 0
    assert "DEADLOCK" in result.err and "Waitall()" in result.err and "dest=1, tag=999" in result.err, result


@pytest.mark.parametrize(("nodes", "options"), [(1, ()), (3, ()), (4, ("--boxes", 2)), (2, ("--strict",))])
def test_partitioned_messages(python_program, nodes, options):
    result = python_program("partitioned.py", nodes, *options)
    assert result.code == 0 and not result.err, result


@pytest.mark.parametrize("count", [8, 800_000])
def test_the_buffer_of_a_receive_that_is_never_completed_is_not_written_at_the_end(c_program, count):
    """It may be a variable of a function that has returned."""
    result = c_program("left_receive.c", 2, arguments=[count])
    assert result.code == 0 and result.out == "" and "never completed" in result.err, result


@pytest.mark.parametrize("options", [(), ("--boxes", 2)], ids=["one", "boxes"])
@pytest.mark.parametrize("strict", [False, True])
def test_requests_that_are_never_completed_are_errors_with_strict(python_program, options, strict):
    result = python_program("left_requests.py", 2, *options, *(["--strict"] if strict else []))
    assert result.code == (1 if strict else 0), result
    assert "left_requests.py:13" in result.err and "left_requests.py:14" in result.err, result
    assert "something is still open" not in result.err, result  # the node has told it
    assert ("warnings are errors (--strict): SP107 of node 1 (exit code 1)" in result.err) == strict, result
