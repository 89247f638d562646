# SPDX-License-Identifier: MIT
"""Topologies and collectives of neighbours, communicators of two groups, and the life of communicators."""

import itertools
import json

import pytest


def factorings(product, count, most):
    """All lists of so many factors in descending order."""
    if count == 0:
        if product == 1:
            yield ()
        return
    for first in range(min(product, most), 0, -1):
        if product % first == 0:
            for rest in factorings(product // first, count - 1, first):
                yield (first, *rest)


def oracle(nodes, dims):
    """The factors that differ least; of several such lists, the smallest."""
    given = 1
    for dim in filter(None, dims):
        given *= dim
    free = [0] * dims.count(0)
    if nodes % given or (not free and given != nodes):
        return None
    if not free:
        return dims
    product = nodes // given
    best = min(factorings(product, len(free), product), key=lambda found: (found[0] - found[-1], found))
    rest = iter(best)
    return [dim or next(rest) for dim in dims]


def test_dims_create_is_balanced(python_program):
    result = python_program("dims.py", 1)
    assert result.code == 0, result
    answers = json.loads(result.out)
    assert len(answers) > 500
    for nodes, dims, answer in answers:
        assert answer == oracle(nodes, dims), (nodes, dims)
        assert len(answer or dims) == len(dims)


def test_dims_create_of_large_numbers_ends(python_program):
    result = python_program("large_dims.py", 1)
    assert result.code == 0, result


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("program", ["grids.py", "graphs.py", "neighbors.py"])
def test_topologies(python_program, program, nodes):
    result = python_program(program, nodes)
    assert result.code == 0, result


@pytest.mark.parametrize("nodes", [2, 3, 4])
@pytest.mark.parametrize("program", ["intercomms.py", "communicators.py"])
def test_communicators(python_program, program, nodes):
    result = python_program(program, nodes)
    assert result.code == 0, result


@pytest.mark.parametrize("program", ["neighbors.py", "intercomms.py", "communicators.py"])
@pytest.mark.slow
def test_in_two_boxes(python_program, program):
    result = python_program(program, 4, "--boxes", 2)
    assert result.code == 0, result


@pytest.mark.parametrize("nodes", [1, 3, 4])
def test_in_c(c_program, nodes):
    result = c_program("topologies.c", nodes)
    assert result.code == 0, result


def test_names_of_mpi_1(c_program):
    result = c_program("old_names.c", 1)
    assert result.code == 0, result


def test_the_oracle_of_dims():
    assert oracle(12, [0, 0]) == [4, 3]
    assert oracle(12, [0, 3, 0]) == [2, 3, 2]
    assert oracle(7, [2, 0]) is None
    assert all(a >= b for a, b in itertools.pairwise(oracle(360, [0] * 4)))
