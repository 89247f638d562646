# SPDX-License-Identifier: MIT
"""The summary at the end: --stats. And warnings that are errors: --strict."""

import os
import re
from types import SimpleNamespace

import pytest

from spcomm.launch.cmdline.groups import Group
from spcomm.launch.supervise import stats
from spcomm.launch.supervise.stats import Spent
from spcomm.text import width

TIMES = ("starting", "computing", "waiting for a core", "waiting", "ended")
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
    """{node: {column: cell}} of both tables."""
    lines = result.err.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("spcomm: statistics of the nodes"))
    found = {}
    for names in (TIMES, ("sent", "received", "MB sent", "MB received", "collectives")):
        head = next(
            at for at in range(start, len(lines)) if re.split("  +", lines[at].strip()) == ["node", *names]
        )
        for line in lines[head + 1 :]:
            node, *cells = line.split() or [""]
            if len(cells) != len(names):
                break
            found.setdefault(node, {}).update(zip(names, cells, strict=True))
    return found


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
        assert all(float(row[name]) >= 0 for name in TIMES)
    for name in TIMES:  # each number is rounded
        assert abs(sum(float(found[node][name]) for node in "012") - float(found["all"][name])) < 0.0021, (
            found
        )
    whole = sum(float(found["all"][name]) for name in TIMES[1:])
    said = float(re.search(r"parallel efficiency: ([0-9.]+) %", result.err)[1])
    assert abs(said - 100 * float(found["all"]["computing"]) / whole) < 0.06 + 0.3 / whole, found


MS = 10**6


def own(**times):
    """Times as a node counts them; given in ms."""
    names = ("started", "closed", "core_started", "core_closed", "waiting_since", "waited", "made")
    return {f"{name}_ns": times.get(name, 0) * MS for name in names}


@pytest.mark.parametrize(
    ("life", "times", "expected"),
    [
        (None, own(started=3), None),
        ((1, 9, 0), None, None),
        ((1, 9, 2), own(), (8, 0, 0, 0)),
        ((1, 9, 2), own(started=3), (2, 4, 2, 0)),
        ((1, 9, 0), own(started=3, waiting_since=6, waited=1), (2, 2, 0, 4)),
        ((1, 9, 2), own(started=3, waiting_since=6, waited=5), (2, 0, 2, 4)),
        ((1, 9, 90), own(started=3, core_started=80), (2, 0, 6, 0)),
        ((1, 9, 90), own(started=3, closed=5, core_started=80, core_closed=80, waited=9), (2, 0, 0, 2)),
    ],
    ids=[
        "not reaped",
        "lost box",
        "no node",
        "killed",
        "killed in a wait",
        "waits first",
        "late count",
        "closed",
    ],
)
def test_times_of_a_node_add_up_to_its_life(life, times, expected):
    lives = [None if life is None else tuple(moment * MS for moment in life)]
    [found] = stats.spent(lives, [times])
    if expected is None:
        assert found is None and stats._seconds(found) == ["?"] * 5
    else:
        assert found == Spent(*(state * MS for state in expected))


def test_both_tables_fit_a_terminal():
    counts = [{**dict.fromkeys(COUNTS, 10**9), "sent_bytes": 10**12, "received_bytes": 10**12}] * 2
    times = [own(started=1, waited=10**7)] * 2
    segment = SimpleNamespace(counts=lambda: counts, times=lambda: times)
    group = Group(0, size=2, segments=[segment])
    names = SimpleNamespace(label=lambda index: f"[1023:{index}] ".encode())
    made = stats.Stats(SimpleNamespace(groups=[group], names=names))
    made.ended(0, (0, 10**14, 0))
    text = made.text()
    assert max(map(width, text.splitlines())) <= 80, text
    assert text.count("?") == 5, "node 1's times are not known"


def test_a_sleep_is_computing_and_the_wait_for_it_waiting(launch):
    """Both bounds hold however busy the machine is: a sleep is never shorter, and node 1 is in its call meanwhile.

    Up to a millisecond without a core, from before the sleep, may be assigned to it: between two look-ups.
    """
    result = launch.program(
        """
        import time, spcomm
        comm = spcomm.startup()
        comm.barrier()
        if comm.rank == 0:
            time.sleep(0.3)
            comm.send(None, 1)
        else:
            wall, cpu = time.perf_counter(), time.thread_time()
            comm.recv(0)
            print(time.perf_counter() - wall - (time.thread_time() - cpu))
        """,
        options=("-n", 2, "--stats"),
    )
    found = table(result)
    assert float(found["0"]["computing"]) >= 0.298, found
    waited, queued = (float(found["1"][name]) for name in ("waiting", "waiting for a core"))
    assert waited + queued >= float(result.out) - 0.011, found


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
