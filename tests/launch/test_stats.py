# SPDX-License-Identifier: MIT
"""The summary at the end: --stats. And warnings that are errors: --strict."""

import os
import re
from types import SimpleNamespace

import pytest

from spcomm.launch.supervise import stats
from spcomm.trace import summary

TIMES = ("computing", "waiting for a core", "waiting")
COUNTS = ("sent", "received", "sent_bytes", "received_bytes", "collectives")

PROGRAM = """
import os, signal, spcomm
comm = spcomm.startup()
for i in range(3):
    comm.barrier()
if comm.rank == 0:
    for i in range(10):
        comm.send(i, 1)
    comm.send(bytes(1_000_000), [1, 2])
    for i in range(30_000_000 // 100):
        pass
if comm.rank == 1:
    for i in range(11):
        comm.recv(0)
if comm.rank == 2:
    comm.recv(0)
comm.global_sum(1)
"""


def table(result):
    """{node: {column: cell}}, and that the last line of all is not in it."""
    lines = result.err.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("spcomm: statistics of the nodes"))
    names = ["node", "time", *TIMES, "sent", "received", "MB sent", "MB received", "collectives"]
    assert re.split("  +", lines[start + 1].strip()) == names
    end = next(at for at, line in enumerate(lines) if at > start and "computing includes starting" in line)
    rows = [line.split() for line in lines[start + 2 : end]]
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows}


@pytest.mark.parametrize("buffers", [(), ("--ring", "4K", "--arena", "0")], ids=["arena", "parts"])
def test_what_nodes_did(launch, start, buffers):
    result = launch.program(PROGRAM, options=("-n", 3, "--stats", *buffers, *start))
    assert result.code == 0 and result.out == "", result
    found = table(result)
    assert list(found) == ["0", "1", "2", "all"]
    assert [found[node]["collectives"] for node in "012"] == ["4", "4", "4"]
    assert [found[node]["MB sent"] for node in ("0", "1", "2", "all")] == ["2.0", "0.0", "0.0", "2.0"]
    assert [found[node]["MB received"] for node in ("0", "1", "2", "all")] == ["0.0", "1.0", "1.0", "2.0"]
    assert [found[node]["sent"] for node in ("0", "1", "2", "all")] == ["12", "0", "0", "12"]
    assert [found[node]["received"] for node in ("0", "1", "2", "all")] == ["0", "11", "1", "12"]
    for row in found.values():
        assert all(float(row[name]) >= 0 for name in ("time", *TIMES))
    for node in "012":  # each number is rounded
        assert sum(float(found[node][name]) for name in TIMES) <= float(found[node]["time"]) + 0.021, found


def test_times_of_a_node_add_up_to_its_life():
    processes = SimpleNamespace(groups=[], names=None)
    line = stats.Stats(processes)._line("0", (10.0, 6.0, 3.0), dict.fromkeys(COUNTS, 0))
    assert line[1:5] == ("10.00", "6.00", "3.00", "1.00")
    total = stats.Stats(processes)._total(
        [(0, (10.0, 6.0, 3.0), dict.fromkeys(COUNTS, 1)), (1, (8.0, 2.0, 0.0), dict.fromkeys(COUNTS, 2))]
    )
    assert total[:6] == ("all", "10.00", "8.00", "3.00", "7.00", "3")
    assert stats._HEAD[2:5] == (*summary._HEAD[1:4],), "the names of `spcomm trace`"


def test_of_a_node_that_was_killed_is_told_what_can_be_known(launch):
    result = launch.program(
        """
        import os, signal, spcomm
        comm = spcomm.startup()
        comm.barrier()
        if comm.rank == 1:
            comm.send(1, 0)
            os.kill(os.getpid(), signal.SIGKILL)
        comm.recv(1)
        comm.barrier()
        """,
        options=("-n", 2, "--stats"),
    )
    assert result.code == 137 and "killed by SIGKILL" in result.last, "the last line says what happened"
    found = table(result)
    assert (found["1"]["sent"], found["0"]["received"], found["1"]["collectives"]) == ("1", "1", "1")


def test_groups_and_executables(launch):
    script = launch.script("import spcomm; spcomm.startup().barrier()")
    result = launch("-n", 1, "--stats", "true", ":", "-n", 2, "--group", 3, script)
    found = table(result)
    assert list(found) == ["0:0", "3:0", "3:1", "all"]
    assert [row["collectives"] for row in found.values()] == ["0", "1", "1", "2"]


def test_frames_between_boxes_only_if_asked_for(launch):
    script = launch.script("import spcomm; spcomm.startup().barrier()")
    for option, is_shown in (("--stats", False), ("--stats=all", True)):
        result = launch("-n", 2, "--boxes", 2, option, script)
        assert result.code == 0 and "statistics of the nodes" in result.err
        assert ("frames between boxes" in result.err) is is_shown


def test_without_it_nothing_is_said(launch):
    assert launch.program(PROGRAM, options=("-n", 3)).err == ""


# Warnings that are errors


@pytest.mark.parametrize(("options", "value"), [((), None), (("--strict",), "1")], ids=str)
def test_programs_of_any_language_are_told(launch, options, value):
    result = launch("-n", 1, *options, "--env", "none", "env")
    told = dict(line.split("=", 1) for line in result.lines)
    assert told.get("SPCOMM_STRICT") == value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "seconds"),
    [((), None), (("--close-timeout", "2.5"), "2.5"), (("--close-timeout", "0"), "0")],
    ids=str,
)
def test_how_long_nodes_go_on_sending(launch, options, seconds):
    from spcomm import config

    result = launch("-n", 1, *options, "env")
    told = dict(line.split("=", 1) for line in result.lines)
    assert told.get(config.CLOSE_VARIABLE) == seconds
    text = "from spcomm import config; print(config.close_timeout())"
    meant = {None: "10.0", "2.5": "2.5", "0": "None"}[seconds]
    assert launch.program(text, options=("-n", 1, *options)).lines == [meant]


def test_a_close_timeout_that_is_over_is_said(launch):
    """Node 1 does not look at its messages before node 0 has given up."""
    os.mkfifo(launch.folder / "over")
    result = launch.program(
        """
        import atexit
        atexit.register(lambda: open("over", "w").close() if comm.rank == 0 else None)  # after spcomm's own
        import spcomm
        comm = spcomm.startup()
        if comm.rank == 0:
            for i in range(20):
                comm.send(bytes(10_000), 1)
        else:
            open("over").close()
        """,
        options=("-n", 2, "--close-timeout", "0.1", "--ring", "4K", "--arena", "0", "--slots", 2),
    )
    assert "close(timeout=0.1)" in result.err, result
