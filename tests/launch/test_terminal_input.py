# SPDX-License-Identifier: MIT
"""Input that is typed: the node that has the standard input reads the terminal itself."""

import os
import shlex
import shutil
import sys
from types import SimpleNamespace

import pytest

from launching import Launch
from processes import children, parent
from spcomm.launch.base import process
from spcomm.launch.local import stdin

pytestmark = pytest.mark.linux("terminals of Linux")

PASSWORD = """
import getpass, spcomm
comm = spcomm.startup({})
word = getpass.getpass("Password: ") if comm.rank == {} else None
print(comm.rank, "got", len(comm.bcast(word, root={})), "letters")
"""
CASES = {
    "run": (("-n", 2), "", 0),
    "exec": (("-n", 2, "--start", "exec"), "", 0),
    "one": (("-n", 1), "", 0),
    "boxes": (("-n", 2, "--boxes", 2), "", 0),
    "stdin-1": (("-n", 2, "--stdin", "1"), "", 1),
    "local_nodes": ((), "local_nodes=2", 0),
}


def plain(monkeypatch, launch, *command):
    """Have `launch` start this command in place of `spcomm run`."""
    monkeypatch.setattr(launch, "command", lambda *arguments, **_more: [*command, *map(str, arguments)])


@pytest.mark.parametrize("case", CASES)
def test_a_password_stays_hidden(terminal, launch, case, monkeypatch):
    options, argument, reader = CASES[case]
    script = launch.script(PASSWORD.format(argument, reader, reader))
    if not options:
        plain(monkeypatch, launch, sys.executable)
    terminal.run(launch, *options, script)
    terminal.until_shows("Password:")
    terminal.until(lambda t: not t.is_echoing())
    terminal.type(b"secret\n")
    assert terminal.wait() == 0
    for rank in range(1 if case == "one" else 2):
        assert any(f"{rank} got 6 letters" in line for line in terminal.lines), terminal.lines
    assert "secret" not in "".join(terminal.lines)
    assert not any("Warning" in line for line in terminal.lines)
    terminal.check()


@pytest.mark.parametrize("surface", ["run", "exec", "boxes"])
def test_nodes_have_no_controlling_terminal(terminal, launch, surface):
    """Programs that insist on one fail at once: sudo, ssh, `read </dev/tty`."""
    options, _argument, _reader = CASES[surface]
    text = """
        import errno, os
        try:
            os.open("/dev/tty", os.O_RDWR)
        except OSError as error:
            print(errno.errorcode[error.errno])
    """
    terminal.run(launch, *options, launch.script(text))
    assert terminal.wait() == 0
    assert sorted(line.split("]")[1] for line in terminal.lines) == [" ENXIO"] * 2


def test_the_terminal_is_set_and_measured_by_the_node(terminal, launch):
    text = """
        import os, subprocess, sys, spcomm
        if spcomm.startup().rank == 0:
            print(tuple(os.get_terminal_size(0)), sys.stdin.isatty(), flush=True)
            subprocess.run(["stty", "-echo"], check=True)
            print("hidden", flush=True)
            sys.stdin.readline()
            print(tuple(os.get_terminal_size(0)), flush=True)
            subprocess.run(["stty", "echo"], check=True)
    """
    terminal.run(launch, "-n", 2, launch.script(text))
    terminal.until_shows("(120, 40) True")
    terminal.until_shows("hidden")
    assert not terminal.is_echoing()
    terminal.resize(100, 30)
    terminal.type(b"\n")
    terminal.until_shows("(100, 30)")
    assert terminal.wait() == 0 and terminal.is_echoing()


def test_ctrl_d_is_the_end_of_input_and_more_can_follow(terminal, launch):
    text = "import sys\nfor _ in range(2): print(sys.stdin.read().split(), flush=True)"
    terminal.run(launch, "-n", 1, launch.script(text))
    terminal.type(b"a b\n\x04")
    terminal.until_shows("['a', 'b']")
    terminal.type(b"c\n\x04")
    assert terminal.wait() == 0
    assert any("['c']" in line for line in terminal.lines)


@pytest.mark.parametrize("end", ["ctrl-c", "another node", "timeout"])
@pytest.mark.slow
def test_a_run_that_ends_at_a_password_leaves_the_terminal_as_it_was(terminal, launch, end):
    text = """
        import getpass, os, signal, sys, spcomm
        comm = spcomm.startup()
        if comm.rank == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            getpass.getpass("Password: ")
        elif sys.argv[1] == "another node":
            open("go").read()
            os._exit(3)
        else:
            comm.recv(source=0)
    """
    os.mkfifo(launch.folder / "go")
    options = ("--timeout", "3") if end == "timeout" else ()
    terminal.run(launch, "-n", 2, *options, launch.script(text), end)
    terminal.until_shows("Password:")
    terminal.until(lambda t: not t.is_echoing() or t.process.poll() is not None)
    if end == "ctrl-c":
        terminal.type(b"\x03")
    elif end == "another node":
        open(launch.folder / "go", "wb").close()
    assert terminal.wait() == {"ctrl-c": 130, "another node": 3, "timeout": 124}[end]
    terminal.check()


ASKS = """
import getpass, os, sys, spcomm
comm = spcomm.startup()
if comm.rank == 0:
    print("node", os.getpid(), "name?", flush=True)
    print("hello", sys.stdin.readline().strip(), flush=True)
    print(len(getpass.getpass("Password: ")), "letters", flush=True)
comm.barrier()
"""


@pytest.fixture
def shell(terminal, launch, monkeypatch):
    """A shell with job control at the terminal."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    plain(monkeypatch, launch, bash, "--norc", "--noediting", "-i")
    terminal.run(launch, env={"PS1": "$ ", "HISTFILE": ""})
    terminal.until_shows("$")
    return terminal


def line_of(launch, *arguments):
    command = Launch.command(launch, *arguments)
    return shlex.join(map(str, command)).encode() + b"\n"


def reads(node):
    """Whether this process waits in a read of its standard input."""
    with open(f"/proc/{node}/syscall", "rb") as file:
        return file.read().split()[:2] == [stdin._READ_CALL, b"0x0"]


def siblings(node):
    return children(parent(node))


def test_ctrl_z_waits_until_the_node_that_reads_has_stopped(monkeypatch):
    states = ["S", "R", "T"]
    monkeypatch.setattr(stdin, "_way", lambda *_: "as it is")
    monkeypatch.setattr(stdin, "_terminal_modes", list)
    monkeypatch.setattr(stdin, "_in_foreground", lambda: True)
    monkeypatch.setattr(process, "state_of", lambda _reader: states.pop(0))
    keyboard = stdin.Stdin()
    keyboard.stopping(SimpleNamespace(started={0: 1}))
    os.close(keyboard.descriptor(1))
    assert states == []


def test_ctrl_z_bg_and_fg(shell, launch):
    """In the background the node that reads stays stopped; after fg a password is still hidden."""
    script = launch.script(ASKS, "a.py")
    shell.type(b"clear; " + line_of(launch, "-n", 2, script))
    shell.until_shows("name?")
    (node,) = [int(line.split()[2]) for line in shell.lines if "name?" in line]
    shell.until(lambda _: reads(node))
    shell.type(b"\x1a")
    shell.until_shows("Stopped")
    assert process.state_of(node) == "T"
    shell.type(b"bg\n")
    (other,) = set(siblings(node)) - {node}
    shell.until(lambda _: process.state_of(other) != "T")
    assert process.state_of(node) == "T"
    shell.type(b"echo shell-$((40 + 2))\n")
    shell.until_shows("shell-42")
    shell.type(b"fg\n")
    shell.type(b"Ada\n")
    shell.until_shows("hello Ada")
    shell.until_shows("Password:")
    shell.until(lambda t: not t.is_echoing())
    shell.type(b"\x1a")
    shell.until(lambda t: sum("Stopped" in line for line in t.lines) == 2)
    shell.type(b"fg\n")
    shell.until(lambda t: not t.is_echoing())
    shell.type(b"secret\n")
    shell.until_shows("6 letters")
    shell.until(lambda t: t.lines[-1] == "$")
    shell.type(b"exit\n")
    assert shell.wait() == 0
    assert "secret" not in "".join(shell.lines)


def test_a_run_in_the_background_reads_when_it_is_in_the_foreground(shell, launch):
    text = "import sys, spcomm\nif spcomm.startup().rank == 0:\n    print('hello', sys.stdin.readline())"
    shell.type(b"clear; " + line_of(launch, "-n", 2, launch.script(text, "a.py")).strip() + b" &\n")
    shell.until_shows("[1]")
    shell.type(b"echo shell-$((40 + 2))\n")
    shell.until_shows("shell-42")
    shell.type(b"fg\nAda\n")
    shell.until_shows("hello Ada")
    shell.until(lambda t: t.lines[-1] == "$")
    shell.type(b"exit\n")
    assert shell.wait() == 0


def test_several_readers_of_a_terminal_each_get_the_line(terminal, launch):
    text = "import sys, spcomm\nprint(spcomm.startup().rank, sys.stdin.readline().strip())"
    terminal.run(launch, "-n", 3, "--stdin", "0,2", launch.script(text))
    terminal.type(b"Ada\n")
    assert terminal.wait() == 0
    shown = {line.partition("] ")[2] for line in terminal.lines if "] " in line}
    assert shown == {"0 Ada", "1", "2 Ada"}


def test_a_terminal_that_controls_no_session_is_read(terminal, launch):
    """As in a container, or below a program that makes sessions."""
    text = "import sys, spcomm\nif spcomm.startup().rank == 0:\n    print('hello', sys.stdin.readline())"
    process = launch.start("-n", 2, launch.script(text), stdin=terminal.end, start_new_session=True)
    terminal.type(b"Ada\n")
    result = launch.finish(process)
    assert (result.code, result.out.strip()) == (0, "hello Ada"), result
