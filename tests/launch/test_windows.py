# SPDX-License-Identifier: MIT
"""A window for a node: --window. The tmux of these tests has a folder of its own for its sockets."""

import contextlib
import os
import shutil
import signal
import subprocess
import time

import pytest

from processes import WATCHDOG_S, read_lines

TMUX = shutil.which("tmux")
needs_tmux = pytest.mark.skipif(TMUX is None, reason="no tmux here")

WAITING = """
import sys, spcomm
comm = spcomm.startup()
print("from", comm.rank, flush=True)
comm.barrier()
if comm.rank == 0:
    print("all are here", flush=True)
    sys.stdin.readline()
comm.barrier()
"""


class Tmux:
    """The tmux server of a run."""

    def __init__(self, launch, pid):
        self.command = [TMUX, "-L", f"spcomm-{pid}"]
        self.environment = launch.environment({"TMUX_TMPDIR": str(launch.folder)})

    def __call__(self, *words):
        return subprocess.run(
            [*self.command, *words], env=self.environment, capture_output=True, text=True, timeout=60
        ).stdout

    def shows(self, window, text):
        """Wait until a window shows a text."""
        return any(text in self("capture-pane", "-p", "-t", f"spcomm:{window}") for _attempt in range(2000))


def begin(launch, *options, script=WAITING):
    process = launch.start(
        "-n", 3, *options, launch.script(script),
        stdin=subprocess.PIPE, env={"TMUX_TMPDIR": str(launch.folder), "TERM": "xterm"},
    )  # fmt: skip
    return process, Tmux(launch, process.pid)


def sockets(launch):
    return [path for path in launch.folder.glob("tmux-*/*")]


@needs_tmux
def test_chosen_nodes_have_a_window_and_are_shown_there(launch):
    process, tmux = begin(launch, "--window", "1-2")
    assert read_lines(process, 2) == ["from 0", "all are here"]
    assert tmux("list-windows", "-F", "#{window_name}").splitlines() == ["node 1", "node 2"]
    for window in ("node 1", "node 2"):
        assert tmux.shows(window, f"from {window[-1]}")
    result = launch.finish(process, b"\n")
    assert result.code == 0 and result.out == "", result
    assert (
        result.err
        == f"spcomm: to see the windows, in another terminal: tmux -L spcomm-{process.pid} attach\n"
    )
    assert sockets(launch) == []


@needs_tmux
def test_what_is_in_a_window_can_be_shown_and_kept_as_well(launch):
    process, _tmux = begin(launch, "--window=all", "--show=1", "--output=kept")
    assert read_lines(process, 1) == ["from 1"]
    assert launch.finish(process, b"\n").code == 0
    assert (launch.folder / "kept/node-2.txt").read_text() == "from 2\n"


@needs_tmux
def test_a_window_that_somebody_closes_stops_nobody(launch):
    process, tmux = begin(
        launch, "--window", "1",
        script=WAITING + "for i in range(5000): print('x' * 100)\nprint('end', comm.rank)",
    )  # fmt: skip
    read_lines(process, 2)
    tmux("kill-window", "-t", "spcomm:node 1")
    result = launch.finish(process, b"\n")
    assert result.code == 0 and result.lines[-1].startswith("end"), result


@pytest.mark.slow
@needs_tmux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=str)
def test_nothing_is_left_however_the_run_ends(launch, number):
    process, _tmux = begin(launch, "--window", "0,2")
    read_lines(process, 1)
    process.send_signal(number)
    launch.finish(process)
    launch.wait_until_nothing_is_left()
    assert sockets(launch) == []


@needs_tmux
def test_a_comma_in_the_path_of_the_socket(launch):
    """tmux says it before two numbers, with commas between: only the socket is removed."""
    precious, place = launch.folder / "a", launch.folder / "a,b"
    precious.touch()
    place.mkdir()
    result = launch("-n", 2, "--window", "all", launch.script("pass"), env={"TMUX_TMPDIR": str(place)})
    assert result.code == 0, result
    assert precious.exists() and list(place.glob("tmux-*/*")) == []


@needs_tmux
def test_inside_tmux_the_windows_are_in_its_session(launch):
    """A session of the user's: its windows stay, those of the run go."""
    process, _none = begin(launch, "--show", "none")  # only for its environment
    launch.finish(process, b"\n")
    tmux = Tmux(launch, "user")
    script = launch.script(WAITING)
    shell = " ".join(launch.command("-n", 2, "--window", "1", script)) + "; tmux wait-for -S over; cat"
    try:
        tmux("-f", os.devnull, "new-session", "-d", "-s", "mine", "-n", "shell", "sh", "-c", shell)
        assert Tmux.shows(_in_session(tmux, "mine"), "shell", "all are here")
        assert tmux("list-windows", "-t", "mine", "-F", "#{window_name}").split("\n")[:2] == [
            "shell",
            "node 1",
        ]
        assert Tmux.shows(_in_session(tmux, "mine"), "node 1", "from 1")
        tmux("send-keys", "-t", "mine:shell", "Enter")
        assert Tmux.shows(_in_session(tmux, "mine"), "shell", "Enter closes its windows")
        tmux("send-keys", "-t", "mine:shell", "Enter")
        tmux("wait-for", "over")
    finally:
        tmux("kill-server")
        with contextlib.suppress(OSError):
            for path in sockets(launch):
                path.unlink()


class _in_session:
    """The server with another session's windows."""

    def __init__(self, tmux, session):
        self._tmux, self._session = tmux, session

    def __call__(self, *words):
        return self._tmux(*(word.replace("spcomm:", f"{self._session}:") for word in words))


def test_without_tmux_there_is_one_sentence(launch):
    result = launch("-n", 2, "--window", "all", launch.script("print('x')"), env={"PATH": str(launch.folder)})
    assert (result.code, result.out) == (125, "")
    assert result.err.startswith("spcomm run: --window needs tmux, which is not here; ")
    assert "--output FOLDER" in result.err and len(result.err.splitlines()) == 1


def test_a_tmux_that_fails_is_one_sentence(launch):
    tmux = launch.script("#!/bin/sh\necho 'no room for windows' >&2\nexit 1", "tmux")
    tmux.chmod(0o755)
    path = f"{launch.folder}{os.pathsep}{os.environ['PATH']}"
    result = launch("-n", 2, "--window", "all", launch.script("print('x')"), env={"PATH": path})
    assert (result.code, result.out) == (125, "")
    assert result.err == "spcomm run: --window: tmux cannot open a window (no room for windows)\n"


# Debugged nodes: a pane for each, and one that types to several

STEPS = """
import spcomm
comm = spcomm.startup()
value = 10 * comm.rank + 5
total = comm.global_sum(value)
print("total", total)
"""


class Panes:
    """The panes of a run, by their titles."""

    def __init__(self, process, tmux):
        self.process, self.tmux = process, tmux
        listed = self.tmux("list-panes", "-t", "spcomm:debug", "-F", "#{pane_id} #{pane_title}")
        self.ids = {title: pane for pane, title in (line.split(" ", 1) for line in listed.splitlines())}

    def text(self, title):
        return self.tmux("capture-pane", "-p", "-t", self.ids[title])

    def type(self, title, *keys):
        self.tmux("send-keys", "-t", self.ids[title], *keys)

    def until_shows(self, title, text, times=1):
        deadline = time.monotonic() + WATCHDOG_S
        while self.text(title).count(text) < times:
            if time.monotonic() > deadline or (self.process.poll() is not None):
                pytest.fail(f"the pane of {title} does not show {text!r} {times} times:\n{self.text(title)}")


def debug(launch, *options, script=STEPS):
    process = launch.start(
        *options, launch.script(script),
        env={"TMUX_TMPDIR": str(launch.folder), "TERM": "xterm", "DEBUGINFOD_URLS": ""},
    )  # fmt: skip
    assert "to see the windows" in process.stderr.readline().decode()
    return process, Panes(process, Tmux(launch, process.pid))


@needs_tmux
def test_debugged_nodes_have_panes_with_keyboards_and_one_that_types_to_all(launch, start):
    process, panes = debug(launch, "-n", 4, "--debug=pdb:0-2", "--window", "0-2", *start)
    assert list(panes.ids) == ["node 0", "node 1", "node 2", "to several nodes"]
    chosen = panes.tmux("display-message", "-p", "-t", "spcomm:debug", "#{pane_title}")
    assert chosen == "to several nodes\n", "where one types when a terminal attaches"
    for rank in "012":
        panes.until_shows(f"node {rank}", "(Pdb)")
    panes.until_shows("to several nodes", "nodes 0-2>")
    panes.type("to several nodes", "break 6", "Enter", "continue", "Enter")
    for rank in "012":
        panes.until_shows(f"node {rank}", 'print("total", total)')
    panes.type("to several nodes", "p value * 1000", "Enter")
    panes.until_shows("node 0", "5000")
    panes.until_shows("node 1", "15000")
    panes.type(
        "to several nodes", "1: p 'for ' + 'one'", "Enter", "0:", "Enter", "p 'other ' + 'one'", "Enter"
    )
    panes.until_shows("node 1", "for one")
    panes.until_shows("node 0", "other one")
    assert "for one" not in panes.text("node 0") and "other one" not in panes.text("node 1")
    panes.type("to several nodes", "3: p 1", "Enter")
    panes.until_shows("to several nodes", "3: not sent; panes have nodes 0-2")
    panes.type("node 1", "p 'my ' + 'key'", "Enter")
    panes.until_shows("node 1", "my key")
    panes.type("to several nodes", "all: continue", "Enter")
    result = launch.finish(process)
    assert (result.code, result.lines, result.err) == (0, ["total 80"], ""), result
    assert sockets(launch) == []


@needs_tmux
@pytest.mark.parametrize("pane", ["node 1", "to several nodes"])
def test_ctrl_c_interrupts_the_nodes_of_the_pane(launch, pane):
    script = """
    import spcomm
    comm = spcomm.startup()
    going = True
    print("round", flush=True)
    while going:
        pass
    """
    process, panes = debug(launch, "-n", 2, "--debug=all", "--window", "all", script=script)
    for rank in "01":
        panes.until_shows(f"node {rank}", "(Pdb)")
    panes.type("to several nodes", "continue", "Enter")
    for rank in "01":
        panes.until_shows(f"node {rank}", "round\n")
    panes.type(pane, "C-c")
    panes.until_shows("node 1", "(Pdb)", 2)
    if pane == "node 1":
        assert panes.text("node 0").count("(Pdb)") == 1
        panes.type("node 0", "C-c")
    panes.until_shows("node 0", "(Pdb)", 2)
    panes.type("to several nodes", "going = False", "Enter", "continue", "Enter")
    assert launch.finish(process).code == 0


@needs_tmux
@pytest.mark.parametrize("how", ["q", "close"])
def test_leaving_one_pane_ends_the_run_and_blames_its_node(launch, how):
    process, panes = debug(launch, "-n", 3, "--debug=pdb:1-2", "--window", "1-2", "--output", "kept")
    panes.until_shows("node 1", "(Pdb)")
    panes.type("node 1", "next", "Enter", "next", "Enter")
    panes.until_shows("node 1", "value = ")
    if how == "q":
        panes.type("node 1", "q", "Enter")
    else:
        panes.tmux("kill-pane", "-t", panes.ids["node 1"])
    result = launch.finish(process)
    how = ("ended with exit code 1", 1) if how == "q" else ("was killed by SIGHUP (exit code 129)", 129)
    assert result.code == how[1] and result.last.startswith(f"spcomm: node 1 {how[0]}"), result
    kept = (launch.folder / "kept/node-1.txt").read_bytes()
    assert b"program.py(2)<module>()" in kept and b"\r\n" not in kept
    launch.wait_until_nothing_is_left()
    assert sockets(launch) == []


@needs_tmux
@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb here")
def test_several_nodes_in_gdb(launch):
    """The session is the node's own: gdb stops its program in the background of the pane, and comes back."""
    process, panes = debug(
        launch, "-n", 2, "--debug=gdb:all", "--window", "all", "--start", "exec",
        script="import os, spcomm\ncomm = spcomm.startup()\nos.getsid(0)\ncomm.barrier()\nprint('pass' + 'ed')",
    )  # fmt: skip
    for rank in "01":
        panes.until_shows(f"node {rank}", "(gdb)")
    panes.type(
        "to several nodes", "set breakpoint pending on", "Enter", "break getsid", "Enter", "run", "Enter"
    )
    for rank in "01":
        panes.until_shows(f"node {rank}", "Breakpoint 1, ")
    panes.type("to several nodes", "continue", "Enter")
    for rank in "01":
        panes.until_shows(f"node {rank}", "passed")
        panes.until_shows(f"node {rank}", "exited normally")
    panes.type("to several nodes", "quit", "Enter")
    result = launch.finish(process)
    assert (result.code, result.out, result.err) == (0, "", ""), result
