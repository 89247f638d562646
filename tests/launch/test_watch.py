# SPDX-License-Identifier: MIT
"""`--watch`: the table at the terminal, what is printed above it, and what is left when it ends."""

import importlib
import os
import re
import signal
from types import SimpleNamespace

import pytest

from processes import STOPPED, spcomm_root, state
from spcomm.launch.cmdline.groups import Group
from spcomm.launch.local import screen as screens
from spcomm.launch.remote import box_proxy
from spcomm.launch.supervise import watch as watching
from terminal import Terminal, resize
from test_output import read_all, terminals

# Node 0 goes on when something was typed; all others wait for it.
WAITING = """
import sys, spcomm
comm = spcomm.startup()
def step():
    comm.recv(source=0, tag=7)
print("begins", flush=True)
if comm.rank == 0:
    sys.stdin.readline()
    for dest in range(1, comm.size):
        comm.send(None, dest, tag=7)
else:
    step()
"""
COUNTS = dict.fromkeys(("sent", "received", "sent_bytes", "received_bytes"), 0)
CALL, PLACE = "recv(source=0, tag=7)", "program.py:5 in step"


def watch(terminal, launch, text, *options, nodes=3, **more):
    return terminal.run(launch, "-n", nodes, "--watch", *options, launch.script(text), **more)


def row(terminal, node):
    """The line of a node in the table."""
    at = next((i for i, line in enumerate(terminal.lines) if line.startswith("spcomm, ")), None)
    found = terminal.lines[at + 2 :] if at is not None else []
    return next((line for line in found if line.split(" ")[0] == str(node)), "")


def test_a_node_that_waits_is_shown_with_its_call_and_line(terminal, launch, start):
    watch(terminal, launch, WAITING, *start)
    terminal.until_shows(CALL, PLACE)
    terminal.until(lambda t: all(CALL in row(t, n) and PLACE in row(t, n) for n in (1, 2)))
    assert row(terminal, 1).split()[1] == "waits"
    terminal.until(lambda t: row(t, 0).split()[1:2] == ["sleeps"])
    terminal.until(lambda t: not t.is_echoing())  # else what is typed would be in the table
    terminal.type(b"\n")
    assert terminal.wait() == 0
    terminal.check()
    *lines, last = terminal.lines
    assert sorted(lines) == [f"[{n}] begins" for n in range(3)]
    assert re.fullmatch(
        r"spcomm: 3 nodes \(3 ended\) after \d+\.\d s, 2 messages sent; --stats shows more", last
    )


def test_states_are_counted_in_a_sentence():
    states = [
        "waits",
        "computes",
        "waits",
        "sleeps",
        "waits for a core",
        "waits for a core",
        "?",
        "failed (3)",
    ]
    rows = [watching.Row(index, str(index), state, 0.0) for index, state in enumerate(states)]
    words = "1 unknown, 1 computes, 1 failed (3), 1 sleeps, 2 wait, 2 wait for a core"
    assert watching.states_text(rows) == words


def test_the_screen_ends_as_without_it(launch):
    text = """
    import spcomm
    comm = spcomm.startup()
    for i in range(30):
        for rank in range(comm.size):
            comm.barrier()
            if rank == comm.rank:
                print("line", i, "ä" * (i * 5), flush=True)
                comm.send(None, 0)
            if comm.rank == 0:
                comm.recv(rank)
    """
    script = launch.script(text)
    screens = []
    for option in ((), ("--watch",)):
        terminal = Terminal(lines=200)
        terminal.run(launch, "-n", 3, *option, script)
        assert terminal.wait() == 0
        terminal.check()
        screens.append(terminal.lines)
        terminal.close()
    without, [*lines, last] = screens
    assert len(without) > 90 and sorted(without) == sorted(lines)
    assert last.startswith("spcomm: 3 nodes (3 ended)")


ENDS = {
    "well": ("spcomm.startup()", 0, ""),
    "a failure": ("spcomm.startup(); raise ValueError('mine')", 1, "ValueError: mine"),
    "a deadlock": ("spcomm.startup().recv(source=0)", 99, "spcomm explain SP101"),
    "a timeout": ("spcomm.startup(); __import__('signal').pause()", 124, "(exit code 124)"),
    "killed": ("import os; spcomm.startup(); os.kill(os.getpid(), 9)", 137, "SIGKILL"),
    "left": ("c = spcomm.startup(); c.send(1, 0)", 0, "never received"),
}


@pytest.mark.parametrize("kind", ENDS)
def test_the_terminal_is_intact_after_any_end(terminal, launch, kind):
    text, code, last = ENDS[kind]
    limit = ("--timeout", "2") if kind == "a timeout" else ()
    watch(terminal, launch, "import spcomm\n" + text, *limit, nodes=2)
    assert terminal.wait() == code, terminal.lines
    terminal.check()
    assert last in "\n".join(terminal.lines)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
@pytest.mark.slow
def test_the_terminal_is_intact_after_a_signal(terminal, launch, number):
    watch(terminal, launch, WAITING)
    terminal.until_shows(CALL, PLACE)
    if number == signal.SIGINT:
        terminal.type(b"\x03")
    else:
        terminal.process.send_signal(number)
    assert terminal.wait() == 128 + number
    terminal.check()
    assert (PLACE in "\n".join(terminal.lines)) == (number == signal.SIGINT), "where the nodes were"


def test_ctrl_z_gives_the_terminal_back_and_fg_goes_on(terminal, launch):
    watch(terminal, launch, WAITING)
    for _time in range(2):
        terminal.until_shows(CALL, PLACE)
        terminal.type(b"\x1a")
        terminal.until(lambda t: state(t.process.pid) in STOPPED and not t.has_table())
        terminal.check()
        terminal.process.send_signal(signal.SIGCONT)
    terminal.until_shows(CALL, PLACE)
    terminal.type(b"\n")
    assert terminal.wait() == 0
    terminal.check()


def test_a_launcher_that_is_killed_leaves_the_cursor_and_no_process(terminal, launch):
    watch(terminal, launch, WAITING)
    terminal.until_shows(CALL, PLACE)
    terminal.process.kill()
    assert terminal.wait() == -9
    assert not terminal.screen.cursor.hidden and terminal.screen.cursor.x == 0
    launch.wait_until_nothing_is_left()


@pytest.mark.slow
@pytest.mark.parametrize("size", [(60, 40), (30, 12), (150, 60), (20, 3)], ids=str)
def test_the_terminal_changes_its_size(terminal, launch, size):
    watch(terminal, launch, WAITING, nodes=8)
    terminal.until_shows(CALL, PLACE)
    terminal.resize(*size)
    before = terminal.lines
    terminal.until(lambda t: t.lines != before)
    terminal.type(b"\n")
    assert terminal.wait() == 0
    assert all(len(line) <= size[0] for line in terminal.lines)


def test_lines_that_a_smaller_terminal_breaks_are_counted():
    main, end = terminals().openpty()
    resize(end, 80, 24)
    screen = screens.Screen(end)
    screen.draw([(b"x" * 79, 79), (b"y" * 20, 20), (b"", 0)])
    screen.flush()
    assert read(main).startswith(b"xxx")
    resize(end, 40, 24)
    screen.draw([])
    screen.flush()
    assert read(main) == b"\r\x1b[4A\x1b[J"
    os.close(main)
    os.close(end)


def read(fd):
    return os.read(fd, 65536)


@pytest.mark.parametrize("nodes", [1, 3, 64])
@pytest.mark.parametrize("columns", [1, 2, 5, 20, 80, 300])
@pytest.mark.parametrize("lines", [1, 2, 3, 5, 8, 24])
def test_the_table_fits_whatever_the_terminal(columns, lines, nodes):
    """With the line of the cursor; else each look would scroll, and leave what it cannot take away."""
    table = pytest.importorskip("spcomm.launch.supervise.watch_table")
    from spcomm.launch.supervise import watch as watching

    rows = [watching.Row(n, str(n), watching.WAITS, 3.0) for n in range(nodes)]
    for one in rows:
        one.call, one.place = CALL, PLACE
    drawn = table.drawing(False)(rows, 3.0, (columns, lines))
    assert sum(-(-width // columns) for _line, width in drawn) < max(lines, 1), drawn
    assert len(drawn) > 0 or lines == 1
    for line, width in drawn:
        assert len(line.decode()) == width


COLORED = {
    "xterm": {"COMPUTES": b"\x1b[94m", "WAITS": b"\x1b[33m", "QUEUES": b"\x1b[32m"},
    "xterm-256color": {"COMPUTES": b"\x1b[94m", "WAITS": b"\x1b[38;5;166m", "QUEUES": b"\x1b[32m"},
}


@pytest.mark.parametrize("kind", COLORED)
def test_states_have_the_colours_of_the_page(monkeypatch, kind):
    table = importlib.reload(
        pytest.importorskip("spcomm.launch.supervise.watch_table")
    )  # rich keeps codes by style
    from spcomm.launch.supervise import watch as watching

    monkeypatch.setenv("TERM", kind)
    monkeypatch.delenv("COLORTERM", raising=False)
    for name, color in COLORED[kind].items():
        state = getattr(watching, name)
        drawn = table.drawing(True)([watching.Row(0, "0", state, 3.0)], 3.0, (100, 24))
        assert color + state.encode() in drawn[-1][0], drawn


def test_more_nodes_than_lines(launch):
    """Those are shown that have waited longest."""
    text = """
    import sys, spcomm
    comm = spcomm.startup()
    if comm.rank in (5, 11):
        comm.recv(source=0, tag=3)
    elif comm.rank == 0:
        sys.stdin.readline()
        comm.send(None, [5, 11], tag=3)
    else:
        __import__("select").select([], [], [], 60)
    """
    terminal = Terminal(lines=12)
    watch(terminal, launch, text, nodes=16)
    terminal.until(lambda t: "recv" in row(t, 5) and "recv" in row(t, 11))
    [more] = [line for line in terminal.lines if line.startswith("and ")]
    shown = [line for line in terminal.lines if line.split(" ")[0].isdecimal()]
    assert more == f"and {16 - len(shown)} more" and 2 < len(shown) < 8
    assert len(terminal.lines) <= 8, "there is room for what nodes print"
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    terminal.close()


def test_a_prompt_is_shown_and_what_is_typed(terminal, launch):
    text = "import spcomm\nc = spcomm.startup()\nif c.rank == 0: input('name? '); input()\nc.recv(0)"
    watch(terminal, launch, text)
    terminal.until(lambda t: t.lines[-1].endswith("[0] name?") and not t.has_table() and t.is_echoing())
    terminal.type(b"ring\n")
    terminal.until(lambda t: t.has_table())
    assert "[0] name? ring" in terminal.lines, "and the table is there again, though nothing else was printed"
    terminal.type(b"\n")
    assert terminal.wait() == 99
    terminal.check()


def test_a_progress_bar_does_not_hide_the_table(terminal, launch):
    text = """
    import sys, spcomm
    comm = spcomm.startup()
    if comm.rank == 0:
        print("\\r10 %", end="", flush=True)
        sys.stdin.readline()
        print("\\r100 %", flush=True)
        comm.send(None, 1)
    else:
        comm.recv(source=0)
    """
    watch(terminal, launch, text, nodes=2)
    terminal.until(lambda t: "recv(source=0" in row(t, 1) and row(t, 0).split()[1] == "sleeps")
    assert "10 %" not in "\n".join(terminal.lines)
    terminal.type(b"\n")
    assert terminal.wait() == 0
    assert "100 %" in terminal.lines[0]


@pytest.mark.slow
def test_no_line_is_lost_or_mixed_when_much_is_printed(launch):
    """The screen is that of a terminal that remembers: as many lines as are printed."""
    terminal = Terminal(lines=3100)
    text = (
        "import spcomm\nr = spcomm.startup().rank\nfor i in range(1000): print(f'<{r}:{i}:' + 'x' * 60 + '>')"
    )
    watch(terminal, launch, text)
    assert terminal.wait() == 0
    expected = {f"[{r}] <{r}:{i}:{'x' * 60}>" for r in range(3) for i in range(1000)}
    *lines, last = terminal.lines
    assert len(lines) == 3000 and set(lines) == expected
    assert last.startswith("spcomm: 3 nodes (3 ended)"), last
    terminal.close()


def test_messages_and_bytes_a_second(terminal, launch):
    text = """
    import spcomm
    comm = spcomm.startup()
    while True:
        comm.send(bytes(100_000), 1 - comm.rank)
        comm.recv(1 - comm.rank)
    """
    watch(terminal, launch, text, nodes=2)

    def numbers(t):
        cells = row(t, 0).split()
        return cells if len(cells) >= 8 and "recv/s" in "".join(t.lines) else None

    cells = terminal.until(numbers)
    assert all(any(character.isdigit() for character in cell) for cell in cells[-4:]), cells
    terminal.type(b"\x03")
    assert terminal.wait() == 130


@pytest.mark.slow
@pytest.mark.parametrize(
    ("letter", "counts", "states"),
    [
        ("R", [(0, 0, 1), (200, 10, 3), (400, 20, 3)], ["computes", "computes", "computes"]),
        ("R", [(0, 0, 1), (50, 200, 3), (90, 400, 5)], ["computes", "waits for a core", "waits for a core"]),
        ("R", [(5, 5, 1), (5, 5, 1), (250, 9, 2)], ["computes", "waits for a core", "computes"]),
        ("S", [(5, 5, 1), (5, 5, 1), (5, 5, 1)], ["sleeps", "sleeps", "sleeps"]),
        ("R", [(0, 0, 0), (0, 0, 0), (0, 0, 0)], ["computes", "computes", "computes"]),
    ],
    ids=["on a core", "in turns", "without a turn", "asleep", "unknown"],
)
def test_states_by_what_the_kernel_counts(monkeypatch, letter, counts, states):
    assert [row.state for row in looks(monkeypatch, letter, counts)] == states


def test_two_sleeps_are_not_one(monkeypatch):
    counts = [(5, 0, 1), (5, 0, 1), (6, 0, 2), (6, 0, 2)]
    assert [row.seconds for row in looks(monkeypatch, "S", counts)] == [0, 1, 0, 1]


def test_a_short_sleep_of_a_call_is_a_wait(monkeypatch):
    counts = [(5, 0, 1), (5, 0, 1), (6, 0, 2)]
    rows = looks(monkeypatch, "S", counts, sleeps=True)
    assert [(row.state, row.seconds) for row in rows] == [("waits", 0), ("waits", 1), ("waits", 0)]


def looks(monkeypatch, letter, counts, sleeps=False):
    """The rows of a node that never waits for long in a call, one a second."""
    segment = SimpleNamespace(fd=0, wait=lambda rank: None, vain=lambda rank: 0, counts=lambda: [COUNTS])
    segment.sleeps = lambda rank: sleeps
    group = Group(0, size=1, segments=[segment])
    label = SimpleNamespace(label=lambda index: b"[0] ")
    watched = watching.Watch(SimpleNamespace(groups=[group], names=label, started={0: 1}))
    monkeypatch.setattr(box_proxy, "state_of", lambda process: letter)
    found = iter(counts)
    monkeypatch.setattr(watching, "scheduled", lambda process: next(found))
    return [watched.rows(float(second))[0] for second in range(len(counts))]


@pytest.mark.slow
def test_nodes_of_several_boxes_and_groups_are_shown(launch):
    for options, names in (("--boxes", 2), "012"), (("--group", 4), ["4:0", "4:1", "4:2"]):
        terminal = Terminal()
        script = launch.script(WAITING)
        more = (":", "-n", 1, "--group", 9, "sleep", "60") if "--group" in options else ()
        terminal.run(launch, "-n", 3, "--watch", *options, script, *more)
        terminal.until(lambda t, names=names: all(CALL in row(t, name) for name in names[1:]))
        if more:
            assert row(terminal, "9:0").split()[1] in ("sleeps", "computes")
        terminal.type(b"\x03")
        assert terminal.wait() == 130
        terminal.check()
        terminal.close()


@pytest.mark.slow
def test_a_node_that_is_stopped_and_one_that_has_ended(terminal, launch):
    text = """
    import os, signal, spcomm
    comm = spcomm.startup()
    if comm.rank == 1: os.kill(os.getpid(), signal.SIGSTOP)
    if comm.rank == 2: signal.pause()
    """
    watch(terminal, launch, text)
    terminal.until(
        lambda t: [row(t, n).split()[1:2] for n in range(3)] == [["ended"], ["stopped"], ["sleeps"]]
    )
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    terminal.check()


@pytest.mark.slow
@pytest.mark.parametrize("which", ["stdout", "stderr"])
def test_one_stream_is_enough(terminal, launch, which):
    """The other one stays untouched, to the byte."""
    read, write = os.pipe()
    watch(terminal, launch, WAITING, **{"stderr" if which == "stdout" else "stdout": write})
    os.close(write)
    terminal.until(lambda t: CALL in row(t, 2))
    terminal.type(b"\n")
    assert terminal.wait() == 0
    terminal.check()
    assert b"\033" not in read_all(read)


@pytest.mark.parametrize(
    ("env", "words"), [({}, "goes elsewhere"), ({"TERM": "dumb"}, "(TERM is dumb)")], ids=["pipe", "dumb"]
)
def test_without_a_terminal_it_says_so_and_runs(terminal, launch, env, words):
    script = launch.script("print('x')")
    if env:
        terminal.run(launch, "-n", 2, "--watch", script, env=env)
        assert terminal.wait() == 0
        lines = terminal.lines
    else:
        result = launch("-n", 2, "--watch", script)
        assert result.code == 0 and result.lines == ["x", "x"]
        lines = result.err.splitlines()
    [sentence] = [line for line in lines if line.startswith("spcomm: ")]
    assert sentence.startswith("spcomm: --watch needs a terminal") and words in sentence
    assert sentence.endswith("the program runs without it")


def test_rich_is_not_imported_without_it(launch):
    (launch.folder / "rich").mkdir()
    launch.script("import os; os.write(2, b'imported'); raise ImportError", "rich/__init__.py")
    path = os.pathsep.join([str(launch.folder), spcomm_root()])
    result = launch.program("print('x')", options=("-n", 1), env={"PYTHONPATH": path})
    assert (result.out, result.err) == ("x\n", "")


def test_a_debugger_needs_the_terminal_for_itself(launch):
    for option in ("--debug", "--debug=gdb:0"):
        result = launch("-n", 2, "--watch", option, launch.script("print('x')"))
        assert (result.code, result.out) == (125, "")
        assert result.err.startswith("spcomm run: --watch and --debug: ") and result.err.count("\n") == 1


def test_with_files_and_the_table_at_the_end(terminal, launch):
    watch(terminal, launch, WAITING, "--output", "kept", "--show", "1", "--stats")
    terminal.until(lambda t: CALL in row(t, 2) and "[1] begins" in t.lines)
    assert sum("begins" in line for line in terminal.lines) == 1, "only what is shown"
    terminal.type(b"\n")
    assert terminal.wait() == 0
    assert (launch.folder / "kept/node-2.txt").read_text() == "begins\n"
    assert any(line.startswith("spcomm: statistics of the nodes") for line in terminal.lines)
    assert not any(line.startswith("spcomm, ") for line in terminal.lines)


SHELL = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
run = subprocess.Popen(sys.argv[1:], process_group=0)
sys.stdin.readline()
os.tcsetpgrp(0, run.pid)
code = run.wait()
os.tcsetpgrp(0, os.getpgrp())
sys.exit(code)
"""


def test_in_the_background_there_is_no_table(terminal, launch, monkeypatch):
    """Another process group has the terminal; the table comes when it is ours, as after fg."""
    text = "import signal, spcomm\nspcomm.startup(); print('begins', flush=True); signal.pause()"
    command = launch.command("-n", 2, "--watch", "--stdin", "none", launch.script(text))
    shell = launch.script(SHELL, "shell.py")
    monkeypatch.setattr(launch, "command", lambda **_more: [command[0], str(shell), *command])
    terminal.run(launch)
    terminal.until(lambda t: sorted(t.lines) == ["[0] begins", "[1] begins"])
    assert terminal.is_echoing(), "the first look was before"
    terminal.type(b"\n")
    terminal.until(lambda t: row(t, 1).split()[1:2] == ["sleeps"])
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    terminal.check()
