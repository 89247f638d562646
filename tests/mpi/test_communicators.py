# SPDX-License-Identifier: MIT
"""Communicators."""

import pytest


def test_a_loop_that_duplicates_and_frees_never_ends_for_lack_of_numbers(python_program):
    result = python_program("duplicates.py", 2)
    assert result.code == 0, result


def test_without_an_arena_the_option_is_named(python_program):
    result = python_program("duplicates.py", 2, "--arena", 0)
    assert result.code == 1 and "start with a larger --arena" in result.err, result


@pytest.mark.parametrize("nodes", (1, 2, 3, 5))
def test_a_duplicate_that_a_request_completes_waits_for_nobody(python_program, nodes):
    result = python_program("idup.py", nodes)
    assert (result.code, result.err) == (0, ""), result


@pytest.mark.parametrize(
    "options",
    [
        ("--boxes", 2),
        ("--map", "0,1,2,0"),
        ("--perturb", "--seed", 3),
        ("--rendezvous", 0),
        ("--slots", 2, "--rendezvous", 0, "--ring", "4K"),
    ],
    ids=lambda options: options[0][2:],
)
def test_such_duplicates_under_options_of_the_run(python_program, options):
    result = python_program("idup.py", 4, *options)
    assert result.code == 0, result


@pytest.mark.parametrize("nodes", (1, 2, 5))
def test_such_duplicates_of_programs_in_c(c_program, nodes):
    result = c_program("idup.c", nodes)
    assert (result.code, result.err) == (0, ""), result


def test_a_deadlock_names_the_duplicate_that_was_begun(python_program):
    result = python_program("idup.py", 3, arguments=["left_alone"])
    assert result.code == 99, result
    assert "Comm_idup, begun at idup.py:" in result.err, result


def test_a_duplicate_that_is_never_completed_is_reported(python_program):
    result = python_program("idup.py", 2, arguments=["never_completed"])
    assert result.code == 0 and "request of Comm_idup at idup.py:" in result.err, result


@pytest.mark.parametrize("boxes", (1, 2))
def test_without_room_in_the_arena_it_fails_when_it_is_completed(python_program, boxes):
    options = ("--boxes", boxes, "--arena", "1M", "--ring", "4K", "--slots", 2)
    result = python_program("idup.py", 4, *options, arguments=["without_room"])
    assert (result.code, result.err) == (0, ""), result


def test_a_node_whose_attributes_are_not_copied_does_not_hold_up_the_others(python_program):
    result = python_program("idup.py", 3, arguments=["refused_copy"])
    assert result.code == 0 and result.err.count("ValueError: ") == 1, result
