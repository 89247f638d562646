# SPDX-License-Identifier: MIT
"""SP101: wrong programs end by themselves with exit code 99, and the report names nodes, calls and lines."""

import os
import sys

import pytest

import cases

PROGRAMS = cases.found("SP101")
DEADLOCK = 99


def test_there_are_enough():
    assert len(PROGRAMS) >= 40


@pytest.mark.rota(4)
@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
def test_is_told(at_programs, compiled, case):
    result = at_programs(*case.command(compiled(case)))
    assert result.code == DEADLOCK, result
    assert cases.differences(case, result.err) == "", result
    assert not at_programs.alive()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8")
def test_a_program_whose_name_is_no_text_is_told_of(launch):
    program = launch.script("import spcomm; spcomm.startup().recv(0)", os.fsdecode(b"\xff.py"))
    result = launch("-n", 2, program)
    assert result.code == DEADLOCK, result
    assert r"\udcff.py:1" in result.err
