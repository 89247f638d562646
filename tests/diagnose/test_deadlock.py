# SPDX-License-Identifier: MIT
"""SP101: wrong programs end by themselves with exit code 99, and the report names nodes, calls and lines."""

import os

import pytest

import cases
from launching import stand_in_for_ssh
from pairwise import each

PROGRAMS = cases.found("SP101")
DEADLOCK = 99


def test_there_are_enough():
    assert len(PROGRAMS) >= 40


def test_programs_compile(written):
    for case in cases.CASES:
        written(case) if case.entry.suffix == ".c" else case.entry.compile()


@pytest.mark.parametrize("case", each(8, PROGRAMS), ids=lambda case: case.name)
def test_is_told(launch, written, case):
    result = launch(*case.command(written(case)))
    assert result.code == DEADLOCK, result
    assert cases.differences(case, result.err) == "", result
    assert not launch.alive()


@pytest.mark.linux("names of files are UTF-8")
def test_a_program_whose_name_is_no_text_is_told_of(launch):
    program = launch.script("import spcomm; spcomm.startup().recv(0)", os.fsdecode(b"\xff.py"))
    result = launch("-n", 2, program)
    assert result.code == DEADLOCK, result
    assert r"\udcff.py:1" in result.err


def until(process, words):
    """The text on stderr up to a line with these words."""
    text = ""
    while words not in text:
        line = process.stderr.readline().decode()
        assert line, text
        text += line
    return text


@pytest.fixture
def gate(launch):
    """Node 2 of a program opens it to read, and goes on when the test has opened and closed it."""
    os.mkfifo(launch.folder / "gate")
    return lambda: (launch.folder / "gate").write_text("")


HANDLED = """
    import spcomm
    comm = spcomm.startup()
    if comm.rank == 0:
        @comm.handler(5)
        def on(message):
            comm.send(None, 1)
        comm.recv(1)
    elif comm.rank == 1:
        comm.recv(0)
        comm.send(None, 0)
    else:
        open("gate").read()
        comm.send(None, 0, 5)
"""


def test_a_handler_may_help_those_who_wait_for_each_other(launch, gate):
    process = launch.start("-n", 3, "--stall", 0.5, launch.script(HANDLED))
    text = until(process, "  Try: ")
    assert "nodes 0-1 have been waiting" in text and "DEADLOCK" not in text, text
    gate()
    result = launch.finish(process)
    assert result.code == 0, result


IN_VAIN = """
    import spcomm
    comm = spcomm.startup()
    def first():
        comm.barrier()
    if comm.rank == 0:
        try:
            first()
        except spcomm.NodeLostError:
            comm.send(None, 1)
    elif comm.rank == 1:
        comm.recv(0, tag=7)
        print("came")
    else:
        open("gate").read()
        {then}
"""
WARNING = """\
spcomm: warning: DEADLOCK — nodes 0-1 of 3 wait for each other, whatever the other node still does
  node 0  barrier()              program.py:5 in first
  node 1  recv(source=0, tag=7)  program.py:12
  circle: 0 → 1 → 0
  Node 0 waits in barrier() for node 1, which must call it, too.
  Try: have every node call barrier(), also those that take another branch, before it waits for them.     \
(spcomm explain SP101)
  The run goes on until the other node waits, or a node ends, which makes waits fail.
"""


@pytest.fixture(
    params=[
        ["-n", 3],
        ["-n", 3, "--map", "0,1,2"],
        ["-n", 3, "--map", "0,0,1"],
        ["--host", "a:3"],
        ["--host", "a:1,b:2"],
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def boxes(request, tmp_path):
    """Options by which three nodes run in one box or in several, here or as if on other machines."""
    ssh = ["--ssh", stand_in_for_ssh(tmp_path)] if "--host" in request.param else []
    return [*request.param, *ssh]


def test_a_barrier_of_one_who_is_waited_for(launch, gate, boxes):
    """Told while node 2 still works; proven, so that the run ends, when it has come."""
    process = launch.start(*boxes, launch.script(IN_VAIN.format(then="comm.barrier()")))
    assert until(process, "  The run goes on") == WARNING
    gate()
    result = launch.finish(process)
    assert result.code == DEADLOCK and "spcomm: DEADLOCK — all 3 nodes wait" in result.err, result


def test_the_end_of_another_ends_what_seemed_in_vain(launch, gate, boxes):
    """Why it is a warning only: this program goes on, and ends well."""
    program = IN_VAIN.format(then="pass").replace("comm.send(None, 1)", "comm.send(None, 1, 7)")
    process = launch.start(*boxes, launch.script(program))
    assert until(process, "  The run goes on") == WARNING
    gate()
    result = launch.finish(process)
    assert result.code == 0 and result.lines == ["came"], result
