# SPDX-License-Identifier: MIT
"""Nodes of `startup(local_nodes=n)` that wait for ever: their supervisor proves it, and says what the launcher says."""

import os
import signal
import time
from pathlib import Path

import pytest

from forking import well
from pairwise import each
from processes import read_lines

CODE = 99
CIRCLE = "comm.recv((comm.rank + 1) % comm.size, tag=7)\n"

# In each of them the nodes are proven to wait only when all do, so that the report is always the same. The report is
# one function of C; tests/diagnose/wrong has all its forms.
SCENES = {
    "array": """
        import numpy
        comm.barrier()
        comm.recv(0) if comm.rank == 1 else comm.global_sum(numpy.zeros(5, 'c8'))
    """,
    "part": """
        part = comm.split(0, key=-comm.rank)
        part.recv((part.rank + 1) % part.size, tag=3)
    """,
    "near": """
        comm.send("x", (comm.rank + 1) % comm.size, tag=1)
        comm.recv((comm.rank - 1) % comm.size, tag=2)
    """,
    "lines": """
        if comm.rank == 0:
            comm.recv(1)
        comm.recv((comm.rank + 1) % comm.size)
    """,
}
FUNCTION = """
    def step():
        comm.recv((comm.rank + 1) % comm.size)
    step()
"""


@pytest.mark.parametrize("scene", each(2, SCENES))
def test_the_same_words_as_the_launcher(forked, launch, scene):
    ours = forked.nodes(3, SCENES[scene], "import spcomm\ncomm = spcomm.startup({nodes})\n")
    program = forked.folder / "program.py"
    program.write_text(program.read_text().replace("startup(3)", "startup()"))
    theirs = launch("-n", 3, "--no-label", program)
    assert "DEADLOCK" in theirs.err
    assert (ours.code, ours.out, ours.err) == (CODE, "", theirs.err), (ours, theirs)
    assert theirs.code == CODE


@pytest.mark.smoke
def test_the_report(forked):
    result = forked.nodes(4, FUNCTION)
    assert (result.code, result.out) == (CODE, ""), result
    assert result.err.splitlines() == [
        "spcomm: DEADLOCK — all 4 nodes wait, and no message is on its way",
        "  nodes 0-3  recv(source=rank+1, tag=ANY)  program.py:7 in step",
        "  circle: 0 → 1 → 2 → 3 → 0",
        "  No matching message has been sent: each of these nodes waits to receive.",
        "  Try: let one node send before it receives, or use sendrecv().     (spcomm explain SP101)",
    ]


def test_some_of_the_nodes(forked):
    """The others compute, and are ended, too."""
    text = """
    if comm.rank in (0, 3):
        comm.recv(3 - comm.rank)
    while True:
        time.sleep(1000)
    """
    result = forked.nodes(4, text)
    assert result.code == CODE, result
    assert result.err.startswith(
        "spcomm: DEADLOCK — nodes 0, 3 of 4 wait for each other only, and no message"
    )


def test_the_rest_when_some_have_finished(forked):
    """Node 0 is over and waits for the others, of which two never end."""
    result = forked.nodes(3, "if comm.rank: comm.recv(3 - comm.rank)\n")
    assert result.code == CODE, result
    assert result.err.startswith("spcomm: DEADLOCK — nodes 1-2 of 3 wait for each other only"), result


def has_been_told(pid):
    """Whether SIGTERM waits for this process, which has it blocked."""
    status = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["ShdPnd"], 16) >> (signal.SIGTERM - 1) & 1 == 1


@pytest.mark.linux("reads /proc")
def test_ctrl_c_after_the_proof(forked):
    """The nodes are deaf, and would be killed when the grace time is over; who presses Ctrl-C does not wait for it."""
    text = f"""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    print(os.getpid())
    {CIRCLE}"""
    process = forked.begin(3, text, start_new_session=True)
    pids = read_lines(process, 3)
    while not all(has_been_told(pid) for pid in pids):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    result = forked.finish(process)
    assert result.code == -signal.SIGKILL, result
    assert result.err.startswith("spcomm: DEADLOCK — all 3 nodes wait"), result
    assert "interrupted" not in result.err, result


# ---- what is none


def test_long_waits(forked):
    """Somebody always computes, for longer than several looks take."""
    text = """
    for turn in range(comm.size):
        if comm.rank == turn:
            time.sleep(0.3)
            comm.send(turn, (turn + 1) % comm.size)
        elif comm.rank == (turn + 1) % comm.size:
            assert comm.recv(turn) == turn
    comm.barrier()
    print("well")
    """
    assert well(forked.nodes(3, text)).lines == ["well"] * 3


def test_waits_that_end_by_themselves(forked):
    text = """
    try:
        comm.recv((comm.rank + 1) % comm.size, timeout=0.5)
    except spcomm.WaitTimeoutError:
        print("late")
    comm.barrier()
    """
    assert well(forked.nodes(3, text)).lines == ["late"] * 3


def test_threads_that_the_ended_program_has_left_waiting(forked):
    """Python's end waits for them, so nothing can end their waits."""
    text = """
    import threading
    def take():
        comm.recv(source=1 - comm.rank)
    threading.Thread(target=take).start()
    """
    result = forked.nodes(2, text)
    assert result.code == 99 and "recv(source=" in result.err and "in take" in result.err, result


def test_another_thread_may_send(forked):
    text = """
    import threading
    gate = threading.Event()
    def send():
        gate.wait(0.5)
        comm.send("late", (comm.rank - 1) % comm.size)
    threading.Thread(target=send).start()
    print(comm.recv((comm.rank + 1) % comm.size))
    """
    assert well(forked.nodes(3, text)).lines == ["late"] * 3


@pytest.mark.slow
def test_ctrl_c_where_nothing_is_proven(forked):
    """A thread that might send keeps it from being called a deadlock: a warning, and the nodes wait until Ctrl-C."""
    text = f"""
    import threading
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    print(comm.rank)
    {CIRCLE}"""
    process = forked.begin(3, text, start_new_session=True)
    read_lines(process, 3)
    told = [process.stderr.readline().decode() for _line in range(2)]
    assert told[0].startswith("spcomm: warning: nodes 0-2 of 3 have been waiting for "), told
    assert told[0].endswith(" s, and only another thread of this program can end that\n"), told
    assert told[1].startswith("  nodes 0-2  recv(source=rank+1, tag=7)  program.py:"), told
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    result = forked.finish(process)
    assert result.code == -signal.SIGINT, result
    assert result.last == "spcomm: interrupted by Ctrl-C (exit code 130); the nodes were stopped"
    assert "DEADLOCK" not in result.err, result
