# SPDX-License-Identifier: MIT
"""`comm.work` and `spcomm run --virtual`: exact numbers of real runs, whatever the machine does meanwhile."""

import math
import os
import subprocess
import sys

import pytest

from spcomm.trace import spans
from spcomm.trace.reader import read
from spcomm.trace.virtual import replay

UNEQUAL = """
    import spcomm
    comm = spcomm.startup()
    for step in range(3):
        comm.work(comm.rank + 1)
        comm.barrier()
"""
PIPELINE = """
    import spcomm
    comm = spcomm.startup()
    for item in range(5):
        if comm.rank:
            comm.recv(source=comm.rank - 1)
        comm.work(2)
        comm.send(item, comm.rank + 1 if comm.rank + 1 < comm.size else spcomm.PROC_NULL)
"""
MASTER = """
    import spcomm
    comm = spcomm.startup()
    if comm.rank == 0:  # in turn, so that the schedule does not follow the machine
        for item in range(6):
            worker = 1 + item % (comm.size - 1)
            comm.ssend(item, worker, tag=1)
        for item in range(6):
            comm.recv(source=1 + item % (comm.size - 1))
        comm.bcast(None)
    else:
        for item in range(comm.rank - 1, 6, comm.size - 1):
            assert comm.recv(source=0, tag=1) == item
            comm.work(3)
            comm.send(item, 0)
        comm.bcast(None)
"""
FUZZY = """
    import spcomm
    comm = spcomm.startup()
    costs = [[1, 4, 2.5], [4, 1, 2.5], [2, 2, 2.5]]
    for step in range(3):
        with comm.fuzzy_barrier():
            comm.work(costs[comm.rank][step])
"""
PLAIN = FUZZY.replace("with comm.fuzzy_barrier():", "comm.barrier(); comm.work(0)").replace(
    "            comm.work(costs", "        comm.work(costs"
)
PARTS = """
    import spcomm
    comm = spcomm.startup()
    with comm.split(comm.rank % 2) as part:
        part.work(comm.rank)
        part.gather(0, root=part.size - 1)
        fuzzy = part.fuzzy_barrier()
        comm.work(1)
        while not fuzzy.done():
            pass
    comm.coordinated_send(comm.rank, (comm.rank + 1) % comm.size)
    comm.work(1)
    for message in comm.coordinated_messages():
        comm.work(1)
"""
# Name: program, nodes, when each node is done.
RUNS = {
    "unequal work": (UNEQUAL, 4, [12, 12, 12, 12]),
    "pipeline": (PIPELINE, 4, [10, 12, 14, 16]),
    "master": (MASTER, 3, [9, 9, 9]),
    "fuzzy barrier": (FUZZY, 3, [7.5, 7.5, 6.5]),
    "plain barrier": (PLAIN, 3, [10.5, 10.5, 10.5]),
    "parts": (PARTS, 4, [5, 5, 5, 6]),
}


@pytest.mark.smoke
@pytest.mark.parametrize("name", RUNS)
def test_exact_times(launch, name):
    program, nodes, done = RUNS[name]
    result = launch("-n", nodes, "--virtual", "--trace", "t.json", launch.script(program))
    assert result.code == 0, result
    found = replay(read(launch.folder / "t.json"))
    assert found.finish == done
    rows = [line.split() for line in result.err.splitlines()[2 : 2 + nodes]]
    assert [row[0] for row in rows] == [str(rank) for rank in range(nodes)], result
    assert [float(row[3]) for row in rows] == done
    assert [float(row[1]) for row in rows] == found.work


def test_without_a_file(launch):
    result = launch("-n", 2, "--virtual", launch.script(UNEQUAL))
    assert result.code == 0 and result.out == "", result
    assert result.err.splitlines() == [
        "spcomm: virtual times (in units of work; only comm.work takes time)",
        "  node  work  waited  done at",
        "  0        3       3        6",
        "  1        6       0        6",
        "  all      9       3        6",
        "  speedup 1.500, efficiency 75.0 %, serial fraction 0.3333 (Karp-Flatt)",
    ]
    assert os.listdir(launch.folder) == ["program.py"]


def test_without_a_place_for_its_trace(launch):
    """As on a machine where neither /tmp nor this folder can be written to."""
    words = (
        "import sys, tempfile; from spcomm.cli import main; tempfile.tempdir = '/proc'; main(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", words, "run", "-n", "1", "--virtual", launch.script(UNEQUAL)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 125, done
    [line] = done.stderr.splitlines()
    assert line.startswith("spcomm: no virtual times: a folder for the trace cannot be made ("), line
    assert line.endswith("); set TMPDIR to one")


def test_in_several_boxes(launch):
    result = launch("-n", 4, "--boxes", 2, "--virtual", "--trace", "t.json", launch.script(UNEQUAL))
    assert result.code == 0, result
    assert replay(read(launch.folder / "t.json")).finish == [12, 12, 12, 12]


def test_a_run_that_fails_has_none(launch):
    result = launch(
        "-n", 2, "--virtual", launch.script("import spcomm; spcomm.startup().work(1); raise SystemExit(3)")
    )
    assert result.code == 3 and "virtual" not in result.err, result
    result = launch(
        "-n", 2, "--trace", "t.json", launch.script("import spcomm; spcomm.startup(); raise SystemExit(3)")
    )
    assert result.code == 3 and read(launch.folder / "t.json").exit_code == 3


def test_what_was_overwritten(launch):
    text = "import spcomm; c = spcomm.startup(); [c.work(0) for _step in range(200)]"
    result = launch("-n", 2, "--virtual", "--trace-events", 64, launch.script(text))
    assert (
        result.code == 0 and "were overwritten; run the program with a larger --trace-events" in result.err
    ), result


def test_no_work_has_no_sign(launch):
    """The sign of -0.0 would be a bit that no cost of another machine may have."""
    text = "import spcomm; c = spcomm.startup(); c.work(-0.0)"
    result = launch("-n", 1, "--trace", "t.json", launch.script(text))
    assert result.code == 0, result
    call = read(launch.folder / "t.json").tracks[0].calls[0]
    assert call.name == "work" and math.copysign(1, call.cost) == 1


def test_work_counts_as_computing(launch):
    text = "import spcomm; c = spcomm.startup(); c.work(40)"
    result = launch("-n", 1, "--trace", "t.json", launch.script(text))
    assert result.code == 0, result
    [track] = read(launch.folder / "t.json").tracks
    work = track.calls[0]
    assert (work.name, work.cost, work.line) == ("work", 40.0, "program.py:1")
    ready = spans.union((*track.computing(), *track.queued()))
    assert any(begin <= work.begin and work.end <= end for begin, end in ready)
    assert not any(begin < work.end and work.begin < end for begin, end in track.transferring())
