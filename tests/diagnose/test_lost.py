# SPDX-License-Identifier: MIT
"""SP104: who needs a node that has ended is told how and where it ended."""

import os
import signal
import subprocess

import pytest

from processes import read_lines

# Node 0 prints what it is told of node 1; the lines are those of the script, which starts with this.
START = """\
import os, signal, sys, time, spcomm
comm = spcomm.startup()
signal.signal(signal.SIGTERM, signal.SIG_IGN); comm.barrier()  # on one line: line numbers are tested
def told(call):
    try:
        call()
    except spcomm.NodeLostError as error:
        print(error, flush=True)
"""

ENDS = {
    "raises": (
        "def work():\n    raise ValueError('no')\nif comm.rank == 1:\n    work()\n",
        "node 1 has died (an uncaught ValueError at program.py:10 in work).\nIts message cannot come any more",
    ),
    "asserts": (
        "if comm.rank == 1:\n    assert comm.size == 1\n",
        "node 1 has died (an uncaught AssertionError at program.py:10).\nIts message cannot come any more",
    ),
    "in-a-call-of-ours": (
        "if comm.rank == 1:\n    comm.send(1, dest=99)\n",
        "node 1 has died (an uncaught RankError at program.py:10).\nIts message cannot come any more",
    ),
    "exits-with-a-code": (
        "if comm.rank == 1:\n    sys.exit(3)\n",
        "node 1 has died (sys.exit(3) at program.py:10).\nIts message cannot come any more",
    ),
    "exits": (
        "def leave():\n    sys.exit()\nif comm.rank == 1:\n    leave()\n",
        "node 1 has finished (sys.exit() at program.py:10 in leave).\n"
        "It will send nothing more, and no such message is left",
    ),
    "closes": (
        "if comm.rank == 1:\n    comm.close()\n    sys.exit()\n",
        "node 1 has finished (close() at program.py:10).\nIt will send nothing more, and no such message is left",
    ),
    "comes-to-its-end": (
        "",
        "node 1 has finished (the end of program.py).\nIt will send nothing more, and no such message is left",
    ),
}


# The launcher, which hears of every failure, is held up: so node 0 has it from node 1 alone.
HOLD_LAUNCHER = """\
import psutil
def launcher():
    return psutil.Process().parents()[1].pid  # the first is the process that started the nodes
if comm.rank == 1:
    os.kill(launcher(), signal.SIGSTOP)
"""
RELEASE_LAUNCHER = "    os.kill(launcher(), signal.SIGCONT)\n"


def run(launch, text, *options):
    return launch.program(START + text, options=("-n", 2, "--start", "fork", *options))


@pytest.mark.parametrize("end", ENDS)
def test_how_it_ended(launch, end):
    text, words = ENDS[end]
    result = run(launch, text + "if comm.rank == 0:\n    told(lambda: comm.recv(1, tag=7))\n")
    assert result.out == f"recv(source=1, tag=7): {words}.     (spcomm explain SP104)\n", result


@pytest.mark.parametrize("end", ["exits-with-a-code", "exits", "comes-to-its-end"])
def test_how_it_ended_by_itself_alone(launch, end):
    text, words = ENDS[end]
    words = words.replace("program.py:10", f"program.py:{10 + HOLD_LAUNCHER.count(chr(10))}")
    told = "if comm.rank == 0:\n    told(lambda: comm.recv(1, tag=7))\n" + RELEASE_LAUNCHER
    result = run(launch, HOLD_LAUNCHER + text + told)
    assert words in result.out, result


def test_from_anybody(launch):
    result = run(launch, "if comm.rank == 0:\n    told(comm.recv)\n")
    assert "The last is node 1, which has finished (the end of program.py)" in result.out, result


KILLED = """
if comm.rank == 1:
    print(os.getpid(), flush=True)
    comm.recv(0, timeout=100)
else:
    sys.stdin.readline()
    told(lambda: comm.recv(1))
"""


def test_killed_while_it_waited(launch):
    """Its line is known, for its wait had been published: the warning of a stall told of it."""
    program = launch.script(START + KILLED)
    process = launch.start("-n", 2, "--stall", 0.3, program, stdin=subprocess.PIPE)
    (pid,) = read_lines(process, 1)
    while "node 1 has been waiting" not in (line := process.stderr.readline().decode()):
        assert line, "the run has ended"
    os.kill(int(pid), signal.SIGKILL)
    result = launch.finish(process, b"\n")
    assert "node 1 has died (killed by signal 9 (SIGKILL), at program.py:12)" in result.out, result
    assert result.code == 137


def test_an_executed_node(launch):
    """Its exceptions are told in the same way; sys.exit() is not heard of."""
    text = START + "if comm.rank == 1:\n    raise OSError\ntold(lambda: comm.recv(1))\n"
    result = launch.program(text, options=("-n", 2, "--start", "exec"))
    assert (
        "node 1 has died (an uncaught OSError at program.py:10).\nIts message cannot come any more"
        in result.out
    ), result


def test_handled_exceptions_are_no_end(launch):
    text = """
try:
    raise ValueError
except ValueError:
    pass
if comm.rank == 0:
    told(lambda: comm.recv(1))
"""
    result = run(launch, text)
    assert "node 1 has finished (the end of program.py)" in result.out and result.code == 0, result
