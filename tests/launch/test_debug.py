# SPDX-License-Identifier: MIT
"""Nodes in a debugger: --debug. What is typed comes through a pipe."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from processes import read_lines
from test_output import read_all, terminals

PROGRAM = """
import spcomm
comm = spcomm.startup()
value = comm.rank * 10
total = comm.global_sum(value)
print("total", total)
"""
FAILING = """
import spcomm
def divide(x):
    return 1 / x
comm = spcomm.startup()
divide(0) if comm.rank == 1 else comm.barrier()
"""


@pytest.mark.slow
@pytest.mark.parametrize("word", ["--debug", "--debug=1", "--debug=pdb:2"])
def test_pdb_has_the_standard_input_of_its_node(launch, start, word):
    node = int(word[-1]) if word[-1].isdigit() else 0
    typed = b"break 6\ncontinue\np (comm.rank, value, __name__)\ncontinue\n"
    result = launch.program(PROGRAM, stdin=typed, options=("-n", 3, "-l", word, *start))
    assert result.code == 0 and result.err == "", result
    lines = [line for line in result.lines if line.startswith(f"[{node}] ")]
    assert lines[0].endswith("program.py(2)<module>()"), "the first line of the program, where it waits"
    assert any(f"({node}, {node * 10}, '__main__')" in line for line in lines), result
    assert sum("total 30" in line for line in result.lines) == 3


def test_pdb_of_a_module_with_arguments(launch, start):
    launch.script("import sys\nprint(sys.argv, __name__, __spec__.name)\n", "package/__main__.py")
    launch.script("", "package/__init__.py")
    result = launch("-n", 1, "--debug", *start, "-m", "package", "one", stdin=b"continue\n")
    path = str(launch.folder / "package" / "__main__.py")
    assert result.code == 0 and f"{[path, 'one']} __main__ package.__main__" in result.out, result


def test_after_an_uncaught_exception_there_is_a_prompt_at_its_line(launch, start):
    result = launch.program(
        FAILING, stdin=b"continue\np ('x is', x)\nq\n", options=("-n", 3, "--debug=1", *start)
    )
    assert result.code == 1, result
    assert "uncaught ZeroDivisionError" in result.out and "('x is', 0)" in result.out
    assert result.err.count("Traceback") == 1 and "debugger.run" not in result.err
    assert result.last.startswith("spcomm: node 1 ended with an uncaught ZeroDivisionError (exit code 1)")


def test_the_failure_of_another_node_leaves_the_debugger_its_prompt(launch, start):
    program = """
    import spcomm
    comm = spcomm.startup()
    if comm.rank == 0:
        raise ValueError("x")
    comm.recv(0)
    """
    typed = b"continue\np ('rank', comm.rank)\nq\n"
    result = launch.program(program, stdin=typed, options=("-n", 3, "--debug=1", *start))
    first = "spcomm: node 0 ended with an uncaught ValueError (exit code 1)"
    assert result.code == 1 and "('rank', 1)" in result.out, result
    assert f"{first}; the run ends when the debugger of node 1 is left" in result.err, result
    assert result.last.startswith(first), result


@pytest.mark.slow
def test_who_leaves_the_debugger_ends_the_run(launch, start):
    for typed in (b"q\n", b""):  # or closes it
        result = launch.program(
            PROGRAM.replace("total =", "comm.barrier(); total ="),
            stdin=b"next\nnext\n" + typed, options=("-n", 3, "--debug=2", *start),
        )  # fmt: skip
        assert result.code == 1 and "the debugger was left, so the run ends" in result.err, result
        assert result.last.startswith("spcomm: node 2 ended with exit code 1")


def test_restart_is_refused(launch):
    result = launch.program(PROGRAM, stdin=b"restart\n", options=("-n", 2, "--debug"))
    assert result.code == 1 and "one node alone cannot be restarted" in result.err


def test_ctrl_c_is_for_who_sits_at_the_debugger(launch):
    """It interrupts the debugged node, as in pdb alone; the run goes on."""
    process = launch.start(
        "-n", 2, "--debug=1",
        launch.script(
            """
            import os, spcomm
            comm = spcomm.startup()
            if comm.rank == 1:
                going = True
                os.write(1, b"waiting\\n")  # not through sys.stdout, which the debugger uses when Ctrl-C comes
                while going:
                    pass
                comm.send("on", 0)
            else:
                print("got", comm.recv())
            """
        ),
        stdin=subprocess.PIPE,
    )  # fmt: skip
    process.stdin.write(b"continue\n")
    while "waiting" not in read_lines(process, 1)[0]:
        pass
    process.send_signal(signal.SIGINT)
    result = launch.finish(process, b"going = False\ncontinue\n")
    assert result.code == 0 and "got on" in result.out, result


def test_pdb_at_a_terminal(launch):
    pty = terminals()
    script = launch.script(PROGRAM)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(launch.folder)
        os.execve(sys.executable, launch.command("-n", 2, "--debug=1", script), launch.environment())
    data = b""
    while data.count(b"(Pdb) ") < 1:
        data += os.read(terminal, 1000)
    os.write(terminal, b"continue\n")
    data += read_all(terminal)
    assert os.waitpid(pid, 0)[1] == 0
    assert data.count(b"total 10") == 2, data


# As debugpy does, it starts an adapter that listens; here each client that it lets in gets a byte.
FAKE = """
import subprocess, sys
ADAPTER = '''
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
listener.accept()[0].sendall(b"!")
'''
def listen(address):
    global adapter
    adapter = subprocess.Popen([sys.executable, "-c", ADAPTER], stdout=subprocess.PIPE)
    return address[0], int(adapter.stdout.readline())
def wait_for_client():
    adapter.communicate()
    print("a client is there", flush=True)
"""


def attach(port):
    """The first byte that a client gets: nothing, if it is not let in."""
    with socket.socket() as sock:
        sock.connect(("127.0.0.1", port))
        try:
            return sock.recv(1)
        except ConnectionResetError:
            return b""


def attach_as_nobody(port):
    """The same for a process of another user, which can import nothing; how much it gets."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setuid(65534)
            os._exit(len(attach(port)))
        finally:
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_debugpy_prints_a_port_for_each_node_and_lets_nobody_else_in(launch):
    launch.script(FAKE, "elsewhere/debugpy.py")
    path = os.pathsep.join([str(launch.folder / "elsewhere"), launch.environment()["PYTHONPATH"]])
    process = launch.start(
        "-n", 3, "--debug=debugpy:0,2", "--stdin", "all", launch.script(PROGRAM), env={"PYTHONPATH": path}
    )
    is_guarded = os.path.exists("/proc/net/tcp")
    who = "no other user of this machine can" if is_guarded else "until you have, any user .* run code as you"
    told = re.compile(
        rf"spcomm: node (\d) waits for a debugger: attach to 127.0.0.1:(\d+) \(debugpy; {who}\)\n"
    )
    found = [told.fullmatch(process.stderr.readline().decode()).groups() for _node in range(2)]
    assert sorted(node for node, _port in found) == ["0", "2"] and len({port for _node, port in found}) == 2
    for _node, port in found:
        if is_guarded and os.getuid() == 0:
            assert attach_as_nobody(int(port)) == 0
        assert attach(int(port)) == b"!"
    result = launch.finish(process)
    assert result.code == 0 and result.lines.count("a client is there") == 2, result


@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb here")
def test_gdb_for_an_executable(launch):
    result = launch(
        "-n", 2, "--debug", "-l", "--stdin", 0, shutil.which("env"), "echo", "hello",
        stdin=b"show args\nset startup-with-shell off\nrun\nquit\n",
    )  # fmt: skip
    assert result.code == 0, result
    assert any('"echo hello"' in line for line in result.lines) and "[1] hello" in result.lines
    assert "[0] (gdb) " in result.out


@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb here")
@pytest.mark.parametrize("typed", [b"run\nquit\n", b"quit\n"], ids=["in the middle", "before it began"])
def test_who_leaves_gdb_ends_the_run(launch, typed):
    """gdb itself ends well: the node that waits for the one that was left is not to blame."""
    result = launch.program(
        """
        import os, spcomm
        comm = spcomm.startup()
        if comm.rank == 1:
            os.getsid(0)
        comm.recv(source=1 - comm.rank)
        """,
        options=("-n", 2, "--start", "exec", "--debug=gdb:1"),
        stdin=b"set breakpoint pending on\nbreak getsid\n" + typed, env={"DEBUGINFOD_URLS": ""},
    )  # fmt: skip
    assert result.code == 1 and "the debugger of node 1 was left, so the run ends\n" in result.err, result
    assert "Traceback" not in result.err and result.last.startswith("spcomm: node 1 ended with exit code 1")


@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb here")
def test_who_leaves_gdb_before_its_program_joins_ends_the_run(launch):
    """The other node needs nothing from it, but shows that the program uses spcomm."""
    result = launch.program(
        "import spcomm\nspcomm.startup()",
        options=("-n", 2, "--start", "exec", "--debug=gdb:1"),
        stdin=b"quit\n",
    )
    assert result.code == 1 and "the debugger of node 1 was left, so the run ends\n" in result.err, result


def test_a_missing_debugger_is_one_sentence(launch):
    tool = launch.script("#!/bin/sh\n", "tool")
    tool.chmod(0o755)
    result = launch("-n", 2, "--debug", "./tool", env={"PATH": str(launch.folder)})
    assert result.code == 125 and result.err.endswith(
        "--debug=gdb needs gdb, which is not here; install it\n"
    )


def test_a_missing_debugpy_is_one_sentence(launch):
    import importlib.util

    if importlib.util.find_spec("debugpy") is not None:
        pytest.skip("debugpy is installed")
    result = launch.program(PROGRAM, options=("-n", 2, "--debug=debugpy:all"))
    assert (
        result.code == 125
        and "needs debugpy, which is not here; install it with: python -m pip" in result.err
    )


def test_a_late_receiver_in_a_debugger_gets_everything(launch):
    """Node 0 is done long before; it waits without a limit until its queued messages are taken."""
    program = """
    import spcomm
    comm = spcomm.startup()
    if comm.rank == 0:
        for i in range(200):
            comm.send(bytes(10_000), 1)
    else:
        print(sum(len(comm.recv()) for _ in range(200)))
    """
    options = ("-n", 2, "--debug=1", "--ring", "4K", "--arena", "0", "--slots", 2)
    result = launch.program(program, stdin=b"continue\n", options=options)
    assert result.code == 0 and "2000000" in result.out, result
