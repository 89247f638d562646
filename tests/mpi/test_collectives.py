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


@pytest.mark.parametrize("nodes", (1, 2, 3, 5))
def test_a_collective_that_returns_a_request_waits_for_nobody(python_program, nodes):
    result = python_program("nonblocking.py", nodes)
    assert (result.code, result.err) == (0, ""), result


@pytest.mark.parametrize(
    "options",
    [
        ("--boxes", 2),
        ("--map", "0,1,2,0"),
        ("--perturb", "--seed", 3),
        ("--rendezvous", 0),
        ("--slots", 2, "--ring", "4K", "--arena", "1M"),
    ],
    ids=lambda options: options[0][2:],
)
def test_such_collectives_under_options_of_the_run(python_program, options):
    result = python_program("nonblocking.py", 4, *options)
    assert result.code == 0, result


def test_such_calls_that_do_not_match(python_program):
    result = python_program("nonblocking.py", 3, arguments=["other_operators"])
    assert result.out.count("refused: ") == 3 and "another collective than this rank" in result.out, result
    result = python_program("nonblocking.py", 3, arguments=["other_lengths"])
    assert result.out.count("rank 0 gave 20 bytes, and there is room for 12") == 2, result


def test_a_deadlock_names_the_collective_that_was_begun(python_program):
    result = python_program("nonblocking.py", 3, arguments=["left_alone"])
    assert result.code == 99, result
    assert "Igather, begun at nonblocking.py:" in result.err, result
