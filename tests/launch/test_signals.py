# SPDX-License-Identifier: MIT
"""Ctrl-C, TERM, HUP and kill -9 of the launcher: no process, no shared memory, no file stays."""

import itertools
import os
import signal
import time

import pytest

import leaks
import processes
from processes import WATCHDOG_S, read_lines

# One pause is not enough: it ends when the launcher asks where the node is.
WAITS = """
    import os, signal, subprocess, sys, spcomm
    comm = spcomm.startup()
    def wait_here():
        print(os.getpid(), flush=True); any(iter(signal.pause, 0))
    wait_here()
"""

LEAVES_CHILDREN = """
    import os, signal, subprocess, sys, spcomm
    comm = spcomm.startup()
    one = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    print(os.getpid(), one.pid, flush=True)
    while True: signal.pause()
"""

STUBBORN = """
    import os, signal, spcomm
    comm = spcomm.startup()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    print(os.getpid(), flush=True)
    while True:
        signal.pause()
"""


@pytest.mark.parametrize(
    ("number", "code", "text"),
    [
        (signal.SIGINT, 130, "spcomm: interrupted by Ctrl-C (exit code 130); the nodes were stopped"),
        (signal.SIGTERM, 143, "spcomm: told to end by SIGTERM (exit code 143); the nodes were stopped"),
        (signal.SIGHUP, 129, "spcomm: told to end by SIGHUP (exit code 129); the nodes were stopped"),
    ],
)
def test_a_signal_to_the_launcher_ends_the_run(launch, start, number, code, text):
    process = launch.start("-n", 3, *start, launch.script(WAITS))
    read_lines(process, 3)
    process.send_signal(number)
    result = launch.finish(process)
    assert result.code == code, result
    assert result.last == text
    assert "Traceback" not in result.err
    assert not launch.alive()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_all_that_a_node_gets_first(launch, number):
    """As a scheduler, killall, or a terminal that closes sends it: the launcher may be the last to get it."""
    is_lost = launch.folder / "is_lost"
    os.mkfifo(is_lost)
    text = f"""
    import os, spcomm
    comm = spcomm.startup()
    comm.barrier()
    if comm.rank == 0:
        os.kill(os.getpid(), {number:d})
    try:
        comm.recv(0)
    except spcomm.NodeLostError:
        open({str(is_lost)!r}, "w").close()
        comm.recv()
    """
    process = launch.start("-n", 2, launch.script(text))
    assert is_lost.read_text() == ""  # and the launcher knows that node 0 has ended
    process.send_signal(number)
    result = launch.finish(process)
    assert result.code == 128 + number, result
    how = f"told to end by {number.name} (exit code {128 + number})"
    assert result.last == f"spcomm: {how}; the nodes were stopped", result


def test_ctrl_c_in_the_last_wait_shows_no_traceback(launch):
    """Python prints the exceptions of functions that run at exit, and says that it ignores them."""
    text = """
        import spcomm, spcomm.joining
        comm = spcomm.startup()
        def interrupted(*_): raise KeyboardInterrupt
        spcomm.joining.release = interrupted
    """
    result = launch.program(text, options=("-n", 1))
    assert "Traceback" not in result.err and "ignored" not in result.err, result


@pytest.mark.parametrize("options", [(), ("--boxes", 2)])
@pytest.mark.parametrize(
    ("wait", "end"),
    list(itertools.product(("comm.recv(0)", "sleep()"), ("raise", "sys.exit(130)"))),
)
def test_an_interrupt_of_one_node_is_one_of_all(launch, options, wait, end):
    """As of `kill -INT`, which the launcher does not get. The others can save what they have, as after Ctrl-C."""
    text = f"""
    import os, signal, spcomm, sys, time
    def sleep():
        while True:
            time.sleep(0.01)
    comm = spcomm.startup()
    try:
        comm.barrier()
        if comm.rank == 0:
            os.kill(os.getpid(), signal.SIGINT)
            sleep()
        {wait}
    except KeyboardInterrupt:
        if comm.rank == 0:
            {end}
        print("saved", comm.rank)
    """
    result = launch("-n", 2, *options, launch.script(text))
    assert (result.code, result.lines) == (130, ["saved 1"]), result
    how = "an uncaught KeyboardInterrupt (exit code 130)" if end == "raise" else "exit code 130"
    assert result.last == f"spcomm: node 0 ended with {how}; the other node was interrupted, too", result


@pytest.mark.parametrize("end", ["raise KeyboardInterrupt", "sys.exit(130)"])
def test_the_interrupt_comes_before_the_loss(launch, tmp_path, end):
    """A launcher that has stopped learns late that a node has ended. Nobody who waits for it learns that earlier."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = f"""
    import os, signal, spcomm, sys
    comm = spcomm.startup()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    print(comm.rank, os.getpid(), flush=True)
    signal.sigwait([signal.SIGUSR1])
    if comm.rank == 0:
        {end}
    try:
        try:
            comm.recv(0, timeout=0)
        except spcomm.SpcommError as error:
            with open({os.fspath(pipe)!r}, "w") as found:
                found.write(type(error).__name__)
        comm.recv(0)
    except KeyboardInterrupt:
        print("saved")
    """
    process = launch.start("-n", 2, launch.script(text))
    nodes = dict(map(int, line.split()) for line in read_lines(process, 2))
    process.send_signal(signal.SIGSTOP)
    os.kill(nodes[0], signal.SIGUSR1)
    assert leaks.wait_for_end(nodes[0], time.monotonic() + WATCHDOG_S)
    os.kill(nodes[1], signal.SIGUSR1)
    assert pipe.read_text() == "WaitTimeoutError"
    process.send_signal(signal.SIGCONT)
    result = launch.finish(process)
    assert (result.code, result.lines) == (130, ["saved"]), result


def test_ctrl_c_in_a_call_of_mpi_is_no_error(launch):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed: pip install 'mpi4py>=4.1'")
    text = """
    import time
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
    comm.barrier()
    print("ready", flush=True)
    if comm.rank:
        comm.Probe(0)
    while True:
        time.sleep(0.01)
    """
    process = launch.start("-n", 2, launch.script(text))
    read_lines(process, 2)
    process.send_signal(signal.SIGINT)
    result = launch.finish(process)
    assert result.code == 130 and "Traceback" not in result.err, result


WAITS_IN = {
    "a call": "comm.recv(0, timeout=1000)",  # without a limit it is a deadlock, and that is told if it is seen first
    "a library": "threading.Event().wait()",
}


@pytest.mark.parametrize("wait", WAITS_IN)
def test_ctrl_c_tells_the_lines_of_the_program(launch, start, wait):
    """Not those of spcomm, compiled or not, nor of Python's library."""
    text = f"""
    import spcomm, threading
    comm = spcomm.startup()
    def step():
        {WAITS_IN[wait]}
    comm.barrier()
    print("ready", flush=True)
    step()
    """
    process = launch.start("-n", 2, *start, launch.script(text))
    read_lines(process, 2)
    process.send_signal(signal.SIGINT)
    lines = launch.finish(process).err.splitlines()
    places = lines[lines.index("spcomm: where the nodes were:") + 1 : -1]
    assert places and all("program.py:" in line for line in places), lines


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nodes_that_ignore_the_signal_are_killed(launch, start, number):
    process = launch.start("-n", 2, "--grace", "0.3", *start, launch.script(STUBBORN))
    read_lines(process, 2)
    process.send_signal(number)
    assert launch.finish(process).code == 128 + number
    assert not launch.alive()


def test_a_second_ctrl_c_does_not_wait(launch):
    process = launch.start("-n", 2, "--grace", "1000", launch.script(STUBBORN))
    read_lines(process, 2)
    process.send_signal(signal.SIGINT)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        os.sched_yield()
    assert launch.finish(process).code == 130


def test_an_end_that_takes_its_time_says_so(launch):
    process = launch.start("-n", 2, "--grace", "1000", launch.script(STUBBORN))
    read_lines(process, 2)
    process.send_signal(signal.SIGINT)
    line = b"spcomm: ending nodes 0-1 \xe2\x80\xa6; Ctrl-C once more does not wait for that\n"
    while process.stderr.readline() not in (line, b""):
        pass
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert launch.finish(process).code == 130


def test_a_node_handles_the_signal_once(launch, start):
    process = launch.start(
        "-n", 2, *start,
        launch.script(
            """
            import os, signal, sys, spcomm
            comm = spcomm.startup()
            count = 0
            read, write = os.pipe()
            def handler(*_):
                global count
                count += 1
                os.write(write, b"!")
            signal.signal(signal.SIGINT, handler)
            print("ready", flush=True)
            os.read(read, 1)
            print("handled", count, flush=True)
            """
        ),
    )  # fmt: skip
    read_lines(process, 2)
    process.send_signal(signal.SIGINT)
    result = launch.finish(process)
    assert result.lines == ["handled 1", "handled 1"], result
    assert result.code == 130


def test_ctrl_c_while_the_fork_server_imports(launch):
    launch.script("print('importing', flush=True)\nimport signal\nsignal.pause()", "endless.py")
    process = launch.start("-n", 2, "--preload", "endless", launch.script(WAITS))
    assert read_lines(process, 1) == ["importing"]
    process.send_signal(signal.SIGINT)
    result = launch.finish(process)
    assert result.code == 130, result
    assert result.last == "spcomm: interrupted by Ctrl-C (exit code 130); the nodes were stopped"


@pytest.mark.parametrize(
    "text", [WAITS, LEAVES_CHILDREN, STUBBORN], ids=["waiting", "with children", "stubborn"]
)
def test_kill_9_of_the_launcher_leaves_nothing(launch, start, text):
    process = launch.start("-n", 3, *start, launch.script(text))
    read_lines(process, 3)
    process.kill()
    process.wait()
    launch.wait_until_nothing_is_left()


def test_kill_9_of_the_launcher_while_the_fork_server_imports(launch):
    launch.script("print('importing', flush=True)\nimport signal\nsignal.pause()", "endless.py")
    process = launch.start("-n", 2, "--preload", "endless", launch.script(WAITS))
    assert read_lines(process, 1) == ["importing"]
    process.kill()
    process.wait()
    launch.wait_until_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("text", [WAITS, LEAVES_CHILDREN], ids=["waiting", "with children"])
def test_a_signal_to_the_fork_server_is_said_and_leaves_nothing(launch, start, text, number):
    process = launch.start("-n", 2, *start, launch.script(text))
    node = int(read_lines(process, 2)[0].split()[0])
    server = processes.parent(node)
    os.kill(server, number)
    result = launch.finish(process)
    assert result.code == 125, result
    how = f"was killed by {number.name} while it ran the nodes"
    assert result.err == f"spcomm: the process that starts the nodes {how}\n", result


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_fork_server_still_ends_the_run(launch, start, number):
    process = launch.start("-n", 2, *start, launch.script(WAITS))
    node = int(read_lines(process, 2)[0])
    server = processes.parent(node)
    os.kill(server, signal.SIGSTOP)
    process.send_signal(number)
    assert launch.finish(process).code == {signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}[number]
    launch.wait_until_nothing_is_left()


def test_a_node_killed_from_outside_is_named(launch, start):
    process = launch.start("-n", 2, *start, launch.script(WAITS))
    os.kill(int(read_lines(process, 2)[1]), signal.SIGKILL)
    result = launch.finish(process)
    assert result.code == 137, result
    assert "was killed by SIGKILL (exit code 137); the other node was stopped" in result.last


def test_what_was_ignored_stays_ignored(launch):
    """As under nohup."""
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    process = launch.start("-n", 2, launch.script(WAITS), preexec_fn=ignore)
    read_lines(process, 2)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert launch.finish(process).code == 143


def test_ctrl_z_stops_the_nodes_too(launch):
    process = launch.start("-n", 2, launch.script(WAITS))
    nodes = [int(line) for line in read_lines(process, 2)]
    process.send_signal(signal.SIGTSTP)
    assert os.waitid(os.P_PID, process.pid, os.WSTOPPED) is not None
    for node in nodes:
        processes.until(node, processes.STOPPED)
    process.send_signal(signal.SIGCONT)
    for node in nodes:
        processes.until(node, processes.GOING_ON)
    process.send_signal(signal.SIGTERM)
    assert launch.finish(process).code == 143
