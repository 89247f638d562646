# SPDX-License-Identifier: MIT
"""Output: whole lines, labels, bytes as they are, slow and closed readers, long lines."""

import contextlib
import os
import subprocess
import sys
import time

import pytest

from processes import read_lines


def terminals():
    """The module pty; a sandbox may have none to give."""
    pty = pytest.importorskip("pty")
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:
        pytest.skip(f"no pseudo-terminal can be had here: {error}")
    return pty


def test_lines_of_many_nodes_are_never_mixed(launch, start):
    count, width = 400, 300
    result = launch.program(
        f"""
        import os, sys, spcomm
        rank = spcomm.startup().rank
        for i in range({count}):
            for piece in (f"<{{rank}}:", f"{{i}}:", "x" * {width}, ">"):
                sys.stdout.write(piece)
                sys.stdout.flush()
            print()
        """,
        options=("-n", 4, *start),
    )
    expected = {f"<{rank}:{i}:{'x' * width}>" for rank in range(4) for i in range(count)}
    assert len(result.lines) == 4 * count and set(result.lines) == expected
    for rank in range(4):
        numbers = [line.split(":")[1] for line in result.lines if line.startswith(f"<{rank}:")]
        assert numbers == [str(i) for i in range(count)], "each node's lines keep their order"


@pytest.mark.parametrize("option", ["-l", "--tag-output"])
def test_labels(launch, option):
    result = launch.program(
        "import sys, spcomm; r = spcomm.startup().rank; print(r, 'a\\n\\nb'); print('e', file=sys.stderr)",
        options=("-n", 2, option),
    )
    assert sorted(result.lines) == sorted(f"[{r}] {text}".rstrip(" ") if text else f"[{r}] " for r in (0, 1)
                                          for text in (f"{r} a", "", "b"))  # fmt: skip
    assert sorted(result.err.splitlines()) == ["[0] e", "[1] e"]


def test_labels_are_on_at_a_terminal_only(launch):
    pty = terminals()
    script = launch.script("print('x')")
    assert launch("-n", 2, script).lines == ["x", "x"]
    for options, expected in (("--no-color",), {"[0] x", "[1] x"}), (("--no-label",), {"x"}):
        main, end = pty.openpty()
        process = launch.start("-n", 2, *options, script, stdout=end)
        os.close(end)
        data = read_all(main)
        launch.finish(process)
        assert set(data.decode().split("\r\n")) - {""} == expected


def read_all(fd):
    data = b""
    with contextlib.suppress(OSError):  # how a terminal ends
        while piece := os.read(fd, 65536):
            data += piece
    os.close(fd)
    return data


def test_output_arrives_while_the_program_runs(launch, start):
    process = launch.start(
        "-n", 1, *start,
        launch.script("import sys; print('first'); print('error', file=sys.stderr); print(input())"),
        stdin=subprocess.PIPE,
    )  # fmt: skip
    assert read_lines(process, 1) == ["first"]
    assert process.stderr.readline() == b"error\n"
    result = launch.finish(process, b"second\n")
    assert result.lines == ["second"]


@pytest.mark.parametrize("labels", [(), ("-l",)], ids=["plain", "labels"])
def test_bytes_pass_unchanged(launch, start, labels):
    data = bytes(range(256)) * 3 + b"\xff\xfe\n\0\r\n"
    label = b"[0] " if labels else b""
    result = launch.program(f"import os; os.write(1, {data!r})", options=("-n", 1, *start, *labels))
    assert result.raw == b"".join(label + line + b"\n" for line in data.removesuffix(b"\n").split(b"\n"))


@pytest.mark.parametrize("labels", [(), ("-l",)], ids=["plain", "labels"])
def test_a_last_line_without_end_is_shown(launch, start, labels):
    result = launch.program(
        "import spcomm; print(spcomm.startup().rank, end='')", options=("-n", 2, *start, *labels)
    )
    assert sorted(result.lines) == (["[0] 0", "[1] 1"] if labels else ["0", "1"]), result


@pytest.mark.slow
@pytest.mark.parametrize("labels", [(), ("-l",)], ids=["plain", "labels"])
def test_very_long_lines_stay_whole_and_cost_no_memory(launch, labels):
    size = 20_000_000
    result = launch.program(
        f"""
        import os, sys, spcomm
        rank = spcomm.startup().rank
        line = bytes([97 + rank]) * {size} + b"\\n"
        sys.stdout.buffer.write(line)
        """,
        options=("-n", 2, *labels),
    )
    prefix = [b"[0] ", b"[1] "] if labels else [b"", b""]
    lines = result.raw.split(b"\n")
    assert sorted(map(len, lines)) == sorted([0, size + len(prefix[0]), size + len(prefix[1])])
    assert {line[:5] for line in lines if line} == {(prefix[0] + b"aaaaa")[:5], (prefix[1] + b"bbbbb")[:5]}


@pytest.mark.linux("reads /proc")
@pytest.mark.slow
def test_the_launcher_holds_little_for_a_slow_reader(launch):
    process = launch.start(
        "-n", 4, launch.script("print('x' * 100, flush=True) or [print('y' * 99) for _ in range(300000)]")
    )
    read_lines(process, 4)
    size = int(
        next(line for line in open(f"/proc/{process.pid}/status") if line.startswith("VmRSS")).split()[1]
    )
    result = launch.finish(process)
    assert len(result.lines) == 4 * 300000
    assert size < 60_000, "kB"


def test_a_reader_that_closes_ends_the_run_without_a_word(launch, start):
    process = launch.start(
        "-n", 3, *start, launch.script("import itertools\nfor i in itertools.count(): print(i, 'x' * 100)")
    )
    read_lines(process, 5)
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == b""


def test_a_full_disk_is_one_sentence(launch):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "wb") as full:
        result = launch.finish(launch.start("-n", 2, launch.script("print('x')"), stdout=full))
    assert result.code == 125
    assert result.err.splitlines() == [
        "spcomm: the output cannot be written (No space left on device); the nodes were stopped"
    ]


def test_both_streams_into_one_file_keep_whole_lines(launch):
    with open(launch.folder / "both", "w+b") as file:
        process = launch.start(
            "-n", 3,
            launch.script("import os\nfor i in range(500): os.write(1 + i % 2, b'%d %s\\n' % (i, b'z' * 500))"),
            stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert launch.finish(process).code == 0
        file.seek(0)
        lines = file.read().split(b"\n")
    assert len(lines) == 1501 and {len(line.split(b" ")[-1]) for line in lines[:-1]} == {500}


@pytest.mark.linux("terminal details")
def test_at_a_terminal_a_prompt_is_shown_and_typed_lines_reach_node_0(launch):
    pty = terminals()
    script = launch.script("import spcomm\nif spcomm.startup().rank == 0: print('hello', input('name? '))")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(launch.folder)
        os.execve(sys.executable, launch.command("-n", 2, script), launch.environment())
    data = b""
    deadline = time.monotonic() + 60
    while b"name? " not in data:
        assert time.monotonic() < deadline
        data += os.read(terminal, 1000)
    os.write(terminal, b"Ada\n")
    data += read_all(terminal)
    assert os.waitpid(pid, 0)[1] == 0
    assert b"hello Ada" in data, data
