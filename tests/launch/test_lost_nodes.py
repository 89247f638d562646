# SPDX-License-Identifier: MIT
"""Nodes that others wait for: who is blamed when one of them is lost."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap

import pytest

from pairwise import each
from processes import read_lines
from spcomm._core import exit_text, handle

# All nodes meet once, so that every node is known to be running before anything happens to one.
MEET = """
    import atexit, os, signal, sys, spcomm
    comm = spcomm.startup()
    comm.barrier()
"""


def program(launch, text, nodes, start, *options):
    indented = "\n".join("    " + line for line in text.splitlines())
    return launch.program(MEET + indented, options=("-n", nodes, *start, *options))


def test_nodes_may_handle_the_loss_of_another(launch, start):
    result = program(
        launch,
        """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
comm.barrier()
if comm.rank == 1: os.kill(os.getpid(), signal.SIGKILL)
try:
    comm.barrier()
except spcomm.NodeLostError as error:
    print("lost", error.rank)
""",
        3,
        start,
        "--grace",
        "60",
    )
    assert result.code == 137, result
    assert result.lines == ["lost 1", "lost 1"]


def test_a_node_that_raises_is_first_however_long_it_takes_to_end(launch, start):
    result = program(
        launch,
        """
read, write = os.pipe()
atexit.register(os.read, read, 1)
if comm.rank == 2:
    raise ValueError("the cause")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
comm.barrier()
""",
        3,
        start,
        "--grace",
        "0.5",
    )
    assert result.code == 1, result
    assert "node 2 ended with an uncaught ValueError (exit code 1)" in result.last, result
    assert result.err.count("Traceback") == 1 and "ValueError: the cause" in result.err


def test_a_node_that_finishes_early_leaves_a_waiting_one_to_blame(launch, start):
    result = program(launch, "if comm.rank == 1: comm.barrier()", 2, start)
    assert result.code == 1, result
    assert result.last == "spcomm: node 1 ended with an uncaught NodeLostError (exit code 1)", result
    assert result.err.count("Traceback") == 1


def test_a_node_that_takes_long_to_exit_with_a_code_is_first(launch):
    """The others have failed when its code is known: it is not taken for one that has gone well."""
    result = launch.program(
        """
        import atexit, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        import spcomm
        comm = spcomm.startup()
        def leave():
            comm.close()
            signal.sigtimedwait({signal.SIGTERM}, 2)  # with which the run is ended, if others are blamed
        if comm.rank == 0:
            atexit.register(leave)
            raise SystemExit(9)
        comm.barrier()
        """,
        options=("-n", 3, "--start", "exec", "--grace", 60),
    )
    assert result.code == 9, result
    assert result.last.startswith("spcomm: node 0 ended with exit code 9"), result


def test_a_loop_of_runs_leaves_nothing(launch):
    script = launch.script("import spcomm; comm = spcomm.startup(); print(comm.global_sum(comm.rank))")
    for _ in range(3):
        assert launch("-n", 8, script).lines == ["28"] * 8


def test_the_root_that_gave_nothing_is_first_however_late_it_says_so(launch, start):
    """The others fail because of it, and are heard of before."""
    result = program(
        launch,
        """
try:
    comm.scatter([1, 2, 3])
except ValueError:
    try:
        comm.recv(1)
    except spcomm.NodeLostError:
        pass
    raise
""",
        2,
        start,
    )
    assert result.code == 1, result
    assert result.last == (
        "spcomm: node 0 ended with an uncaught ValueError (exit code 1); node 1 raised SpcommError because of it"
    ), result
    assert result.err.count("Traceback") == 1 and "ValueError: scatter(objs)" in result.err, result


# The others have long failed because of it when the root ends by its error.
CLEANS_UP = """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
try:
    comm.scatter([1, 2])
finally:
    if comm.rank == 0:
        signal.sigtimedwait({signal.SIGTERM}, 2)  # with which the run is ended, if others are blamed
"""


def test_the_root_that_gave_nothing_is_first_however_long_it_cleans_up(launch, start):
    """The launcher waits for the report of an error of which others were told, as long as the error is alive."""
    result = program(launch, CLEANS_UP, 3, start, "--grace", 60)
    assert result.code == 1, result
    assert result.last == (
        "spcomm: node 0 ended with an uncaught ValueError (exit code 1); "
        "nodes 1-2 raised SpcommError because of it"
    ), result


def test_an_error_counts_as_long_as_it_is_alive(monkeypatch):
    """A copy in another process, or of another process, does not count."""
    counted = []
    monkeypatch.setattr(handle, "raised", lambda node, change: counted.append((node, change)))
    node = type("Node", (), {})()
    error = ValueError("wrong")
    error.raised = exit_text.Raised(node)
    copied = pickle.loads(pickle.dumps(error))
    assert counted == [(node, 1)] and copied.raised is None
    try:
        raise error
    except ValueError:
        pass
    del error
    assert counted == [(node, 1), (node, -1)]


@pytest.mark.linux("reads /proc")
def test_a_node_that_gives_nothing_raises_its_own_error_though_the_other_has_ended(launch, start):
    """The other node ends when it is told, and most of its item is still there."""
    result = program(
        launch,
        """
pid = comm.allgather(os.getpid())[1]
if comm.rank == 0:
    @comm.handler(5)
    def wait_until_it_has_ended(message):
        while os.path.exists(f"/proc/{pid}"):
            pass
    comm.alltoall([None])
else:
    comm.send(None, 0, 5)
    comm.alltoall([bytes(1_000_000)] * 2)
""",
        2,
        start,
        *("--arena", 0, "--ring", "4K"),
    )
    assert result.code == 1, result
    assert result.last == (
        "spcomm: node 0 ended with an uncaught ValueError (exit code 1); node 1 raised SpcommError because of it"
    ), result
    assert result.err.count("Traceback") == 1 and "ValueError: alltoall(objs)" in result.err, result


# A semaphore that has a name, as spawn needs it: the node's tracker of multiprocessing removes it.
TRACKED = """
    import multiprocessing, os, signal, spcomm
    lock = multiprocessing.get_context("spawn").Lock()
    comm = spcomm.startup()
    print(lock._semlock.name)
    comm.barrier()
"""
ENDS = {
    "raised": ("if comm.rank == 1: raise ValueError", 1),
    "killed": ("if comm.rank == 1: os.kill(os.getpid(), signal.SIGKILL)", 137),
    "deaf": ("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nif comm.rank == 1: os._exit(3)", 3),
    "fork_client": ("if comm.rank == 1: os.kill(os.getppid(), signal.SIGKILL)", 125),
    "hung up": ("", 129),
    "launcher": ("", -9),
}


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="semaphores are files in /dev/shm on Linux only")
@pytest.mark.parametrize("end", each(2, ENDS))
def test_no_semaphore_outlives_a_run(launch, start, end):
    """The tracker of multiprocessing, whichever process is killed, gets the time to remove what nodes leave."""
    text, code = ENDS[end]
    lines = "\n".join("    " + line for line in (text + "\nsignal.pause()").strip().splitlines())
    process = launch.start("-n", 2, "--no-label", "--grace", "0.1", *start, launch.script(TRACKED + lines))
    names = read_lines(process, 2)
    if end in ("launcher", "hung up"):
        process.send_signal(signal.SIGKILL if end == "launcher" else signal.SIGHUP)
    result = launch.finish(process)
    assert result.code == code, result
    launch.wait_until_nothing_is_left()
    assert names[0].startswith("/mp-"), result
    assert not [name for name in names if os.path.exists(f"/dev/shm/sem.{name[1:]}")], result


# One core, and a node that is less urgent than its parent: its tracker has no arguments yet when the parent looks.
YOUNG_TRACKER = """
    import multiprocessing, os
    from spcomm.launch.base import process
    process.adopt_orphans()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.nice(19)
        lock = multiprocessing.get_context("spawn").Lock()
        os.write(writing, lock._semlock.name.encode())
        os._exit(0)
    os.wait()
    process.end_children(set())
    print(os.read(reading, 100).decode())
"""


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="semaphores are files in /dev/shm on Linux only")
def test_a_tracker_that_is_being_started_is_spared():
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(YOUNG_TRACKER)], capture_output=True, text=True
    )
    name = result.stdout.strip()
    assert name.startswith("/mp-"), result
    assert not os.path.exists(f"/dev/shm/sem.{name[1:]}"), result
