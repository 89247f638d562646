# SPDX-License-Identifier: MIT
"""The nodes that get the standard input: --stdin."""

import os
import subprocess

import pytest

from pairwise import each

ECHO = """
import sys, spcomm
comm = spcomm.startup()
data = sys.stdin.buffer.read()
print(comm.rank, len(data), sum(data))
"""


def expected(data, chosen, nodes):
    return [f"{rank} {len(data)} {sum(data)}" if rank in chosen else f"{rank} 0 0" for rank in range(nodes)]


@pytest.mark.parametrize("source", ["pipe", "file"])
@pytest.mark.parametrize(
    ("option", "chosen"),
    each(
        2,
        [
            ((), {0}),
            (("--stdin", "2"), {2}),
            (("--stdin", "0,2"), {0, 2}),
            (("--stdin=all",), {0, 1, 2}),
            (("--stdin", "none"), ()),
        ],
    ),
    ids=str,
)
def test_chosen_nodes_get_all_of_it(launch, start, source, option, chosen):
    data = os.urandom(1_000_000)
    script, options = launch.script(ECHO), ("-n", 3, *option, *start)
    if source == "pipe":
        # When nobody reads, a pipe's writer gets EPIPE, which communicate() takes as it is.
        result = launch(*options, script, stdin=data)
    else:
        (launch.folder / "input").write_bytes(data)
        with open(launch.folder / "input", "rb") as file:
            result = launch.finish(launch.start(*options, script, stdin=file))
    assert result.code == 0, result
    assert sorted(result.lines) == expected(data, chosen, 3)


@pytest.mark.parametrize(("option", "readers"), [((), "node 0"), (("--stdin", "none"), "no node")], ids=str)
def test_a_node_that_reads_in_vain_hears_who_has_the_input(launch, option, readers):
    text = "import signal, spcomm\nif spcomm.startup().rank == 1:\n    input()\nsignal.pause()\n"
    result = launch.program(text, options=("-n", 2, *option), stdin=b"5\n")
    assert result.last.endswith(
        f"; the standard input goes to {readers}: read it there, or run with --stdin all"
    )


def test_a_file_is_read_from_where_it_stands(launch):
    (launch.folder / "input").write_bytes(b"first\nsecond\n")
    with open(launch.folder / "input", "rb", buffering=0) as file:
        file.seek(6)
        result = launch.finish(launch.start("-n", 2, "--stdin", "all", launch.script(ECHO), stdin=file))
    assert sorted(result.lines) == expected(b"second\n", {0, 1}, 2)


def test_lines_arrive_while_the_source_is_open(launch):
    script = launch.script("import sys, spcomm\nprint(spcomm.startup().rank, sys.stdin.readline(), end='')")
    process = launch.start("-n", 3, "--stdin", "all", script, stdin=subprocess.PIPE)
    process.stdin.write(b"line\n")
    got = sorted(process.stdout.readline() for _ in range(3))
    assert got == [b"%d line\n" % rank for rank in range(3)]
    assert launch.finish(process).code == 0


@pytest.mark.slow
def test_who_has_ended_or_does_not_read_keeps_nobody_waiting(launch):
    """Node 0 ends at once, node 1 closes its input, node 2 reads only when node 3 has read everything."""
    data = bytes(5_000_000)
    result = launch.program(
        """
        import os, sys, spcomm
        comm = spcomm.startup()
        if comm.rank == 1:
            os.close(0)
        if comm.rank in (1, 2):
            comm.recv(3)
        if comm.rank >= 2:
            print(comm.rank, len(sys.stdin.buffer.read()))
        if comm.rank == 3:
            comm.send(None, [1, 2])
        """,
        options=("-n", 4, "--stdin", "all"), stdin=data,
    )  # fmt: skip
    assert result.code == 0, result
    assert result.lines == ["3 5000000", "2 5000000"]


@pytest.mark.slow
def test_more_than_is_kept_waits_for_the_slowest(launch):
    """The launcher keeps 64 MiB for a node that reads nothing; what comes then has to wait, and is not lost."""
    process = launch.start(
        "-n", 2, "--stdin", "all",
        launch.script(
            """
            import sys, spcomm
            comm = spcomm.startup()
            size = 0
            if comm.rank == 1:  # reads when the other has got what the launcher may be ahead
                comm.recv(0)
            while piece := sys.stdin.buffer.read1(1 << 20):
                size += len(piece)
                if comm.rank == 0 and size >= 60 << 20 > size - len(piece):
                    comm.send(None, 1)
            print(comm.rank, size)
            """
        ),
        stdin=subprocess.PIPE,
    )  # fmt: skip
    result = launch.finish(process, bytes(100 << 20))
    assert sorted(result.lines) == [f"0 {100 << 20}", f"1 {100 << 20}"], result


@pytest.mark.parametrize("nodes", ["all", "1"])
def test_an_empty_standard_input(launch, nodes):
    result = launch("-n", 2, "--stdin", nodes, launch.script(ECHO))
    assert sorted(result.lines) == ["0 0 0", "1 0 0"]
