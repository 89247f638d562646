# SPDX-License-Identifier: MIT
"""Options for the output of nodes, its colours and its files: --show, --color, --output."""

import os

import pytest

from pairwise import each
from test_output import read_all, terminals

BOTH = "import sys, spcomm; r = spcomm.startup().rank; print('out', r); print('err', r, file=sys.stderr)"


@pytest.mark.parametrize(
    ("ranks", "shown"), each(2, [("0,2", "02"), ("1-2", "12"), ("all", "0123"), ("none", ""), ("3", "3")])
)
def test_only_chosen_nodes_are_shown(launch, start, ranks, shown):
    result = launch.program(BOTH, options=("-n", 4, "--show", ranks, *start))
    assert result.code == 0, result
    assert sorted(result.lines) == [f"out {rank}" for rank in shown]
    assert sorted(result.err.splitlines()) == [f"err {rank}" for rank in shown]


def test_what_is_not_shown_stops_nobody(launch):
    result = launch.program("import os; os.write(1, b'x' * 3_000_000)", options=("-n", 2, "--show", "none"))
    assert (result.code, result.out, result.err) == (0, "", "")


def test_a_traceback_is_always_shown(launch, start):
    result = launch.program(
        "import spcomm\nif spcomm.startup().rank == 1: raise ValueError('mine')",
        options=("-n", 2, "--show", "0", *start),
    )
    assert result.code == 1 and "ValueError: mine" in result.err


@pytest.mark.slow
def test_colours_on_request(launch):
    plain = launch.program("print('x')", options=("-n", 2, "-l"))
    assert "\033" not in plain.out
    for env in ({}, {"NO_COLOR": "1", "TERM": "dumb"}):  # what is asked for is done
        colored = launch.program("print('x')", options=("-n", 2, "--color"), env=env)
        assert sorted(colored.lines) == ["\033[33m[1]\033[0m x", "\033[36m[0]\033[0m x"]
    assert launch.program("print('x')", options=("-n", 2, "--color", "--no-label")).lines == ["x", "x"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "env", "colored"),
    [
        ((), {"TERM": "xterm"}, True),
        ((), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        ((), {"TERM": "xterm", "NO_COLOR": ""}, True),
        ((), {"TERM": "dumb"}, False),
        (("--no-color",), {"TERM": "xterm"}, False),
        (("--color",), {"TERM": "dumb"}, True),
    ],
    ids=str,
)
def test_colours_at_a_terminal(launch, options, env, colored):
    main, end = terminals().openpty()
    process = launch.start("-n", 2, *options, launch.script(BOTH), stdout=end, env=env)
    os.close(end)
    data = read_all(main)
    result = launch.finish(process)
    assert (b"\033[" in data) == colored, data
    forced = "--color" in options
    assert ("\033[" in result.err) == forced, "stderr is no terminal here"


def test_a_file_for_each_node(launch, start):
    result = launch.program(
        """
        import os, spcomm
        rank = spcomm.startup().rank
        os.write(1, b'out %d\\n\\xff\\0' % rank)
        os.write(2, b'err %d' % rank)
        """,
        options=("-n", 3, "--output", "deep/er", *start),
    )
    assert result.code == 0, result
    assert sorted(os.listdir(launch.folder / "deep" / "er")) == [f"node-{rank}.txt" for rank in range(3)]
    for rank in range(3):
        kept = (launch.folder / f"deep/er/node-{rank}.txt").read_bytes()
        out, err = b"out %d\n\xff\0" % rank, b"err %d" % rank
        assert kept in (out + err, err + out), "all bytes, and nothing else"
    assert all(f"out {rank}" in result.out for rank in range(3)), "it is shown, too"


def test_what_is_kept_need_not_be_shown_and_replaces_what_was_there(launch):
    (launch.folder / "kept").mkdir()
    (launch.folder / "kept" / "node-0.txt").write_text("of an earlier run " * 1000)
    text = "import sys; sys.stdout.write('y' * 1_000_000)"
    result = launch.program(text, options=("-n", 2, "-l", "--show=none", "--output=kept"))
    assert (result.code, result.out, result.err) == (0, "", "")
    for rank in range(2):
        assert (launch.folder / "kept" / f"node-{rank}.txt").read_text() == "y" * 1_000_000


def test_a_traceback_is_kept_with_its_node(launch, start):
    result = launch.program(
        "import spcomm\nif spcomm.startup().rank == 1: raise ValueError('mine')",
        options=("-n", 2, "--output", "kept", *start),
    )
    assert result.code == 1 and "ValueError: mine" in result.err
    assert (launch.folder / "kept/node-1.txt").read_text().endswith("ValueError: mine\n")
    assert (launch.folder / "kept/node-0.txt").read_text() == ""


def test_files_of_groups(launch):
    script = launch.script(BOTH)
    options = ("-n", 1, "--group", 4, "--output", "kept", script, ":", "-n", 2, "--group", 2, script)
    assert launch(*options).code == 0
    names = ["group-2-node-0.txt", "group-2-node-1.txt", "group-4-node-0.txt"]
    assert sorted(os.listdir(launch.folder / "kept")) == names


@pytest.mark.parametrize("endless", [False, True], ids=["short", "endless"])
def test_a_full_disk_is_one_sentence(launch, start, endless):
    """One node's file is full; the others, and the node itself, wait for nothing."""
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    (launch.folder / "kept").mkdir()
    (launch.folder / "kept" / "node-1.txt").symlink_to("/dev/full")
    text = (
        "print('x')"
        if not endless
        else "import spcomm; spcomm.startup(); print('x'); spcomm.startup().recv()"
    )
    result = launch.program(text, options=("-n", 3, "--output", "kept", *start))
    assert result.code == 125, result
    reason = "cannot be written to kept/node-1.txt (No space left on device)"
    assert result.last == f"spcomm: the output {reason}; the nodes were stopped"


def test_a_pipe_that_nobody_reads_is_not_waited_for(launch):
    os.mkfifo(launch.folder / "node-1.txt")
    result = launch.program("print('never')", options=("-n", 2, "--output", "."))
    assert (result.code, result.out) == (125, "")
    assert result.last == "spcomm run: --output .: ./node-1.txt is a pipe without a reader, not a file"
