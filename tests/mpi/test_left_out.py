# SPDX-License-Identifier: MIT
"""The MPI functions that are left out: csrc/mpi/functions.txt marks them, and the guide names them."""

import importlib.util
import re

import pytest

from checkout import ROOT

FOLDER = ROOT / "csrc" / "mpi"
PROGRAMS = ROOT / "tests" / "mpi" / "programs"


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def marked():
    return set(re.findall(r"^- (?:\w+ )?(\w+)\(", (FOLDER / "functions.txt").read_text(), re.MULTILINE))


def test_those_without_a_mark_are_there(generate, marked):
    assert {function.name for function in generate.functions() if function.is_left_out} == marked


def test_those_with_a_mark_are_not_there(generate, marked):
    assert not {f"spc_mpi_{name.lower()}" for name in marked} & generate.defined()


def test_the_guide_names_them(marked):
    text = (ROOT / "docs" / "howto" / "mpi_c.md").read_text()
    paragraph = re.search(r"^A call of a function that is left out .*?\n\n", text, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`MPI_(?!ERR_)(\w+)`", paragraph[0])) == marked


def test_a_call_of_one_ends_with_one_sentence(python_program):
    result = python_program("left_out.py", 2)
    assert result.code == 1, result
    sentences = [line for line in result.err.splitlines() if "MPI_Open_port: spcomm does not have" in line]
    assert len(sentences) == 1, result


@pytest.mark.parametrize("nodes", [1, 4])
def test_a_pool_that_cannot_start_workers_ends_the_run(python_program, nodes):
    result = python_program("pool.py", nodes)
    assert result.code == 1 and "spcomm run -n N -m mpi4py.futures PROGRAM" in result.err, result
    assert "Traceback" not in result.err, result


def test_a_pool_of_one_node_has_a_thread_for_its_worker(launch, mpi4py):
    result = launch("-n", 1, "-m", "mpi4py.futures", PROGRAMS / "pool.py")
    assert (result.code, result.lines) == (0, [str([number * number for number in range(10)])]), result


@pytest.mark.parametrize("options", [(), ("--boxes", 2)])
def test_a_pool_has_the_nodes_as_its_workers(launch, mpi4py, options):
    result = launch("-n", 3, *options, "-m", "mpi4py.futures", PROGRAMS / "pool.py")
    assert (result.code, result.lines) == (0, [str([number * number for number in range(10)])]), result
