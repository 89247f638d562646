# SPDX-License-Identifier: MIT
"""Boxes without a launcher: `startup` with a server in the infile, in two shells, becomes one run."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

import processes
from netting import PATHS
from pretending import VERDICT, Pretender, message
from processes import read_lines, read_until
from rooming import CODE, OTHER_CODE
from spcomm._core import net
from spcomm.launch.room import connect
from spcomm.launch.room.meeting import Meeting, Seat

OTHER_VERSION = 3  # a verdict
WHERE = """
    import os, sys, spcomm
    comm = spcomm.startup(infile=sys.argv[-1])
    assert "SPCOMM_CODE" not in os.environ
    print(comm.rank, comm.box, comm.local_rank, comm.group_id, comm.allreduce(comm.rank), flush=True)
"""
WAITS = """
    import os, sys, spcomm
    comm = spcomm.startup(infile=sys.argv[-1])
    comm.barrier()
    print(os.getpid(), comm.rank, flush=True)
    comm.recv(tag=comm.rank)
"""


RANDOM = """
    import sys, spcomm
    from play import play
    comm = spcomm.startup(infile=sys.argv[-1])
    for seed in range(int(sys.argv[1])):
        play(comm, seed, (20, 60, 120, 400)[seed % 4], seed % 8, 400_000)
    print(comm.rank, "is done")
"""


@pytest.fixture
def server(room):
    """A server, reached as over a network."""
    room.serve()
    return room


def start(server, program, *infiles, **more):
    """A box for each infile; each waits at the server before the next one starts."""
    boxes = []
    for number, infile in enumerate(infiles):
        boxes.append(server.box(sys.executable, program, infile=infile, name=f"{number}.toml", **more))
        if number < len(infiles) - 1:
            read_until(boxes[-1].stderr, "waiting for nodes: ")
    return boxes


def carry_out_schedules(server, infiles, count):
    """The random schedules of everything at once, and their oracle, of tests/stress."""
    path = ":".join([*map(str, PATHS), server.environment()["PYTHONPATH"]])
    program = server.script(RANDOM)
    boxes = []
    for number, infile in enumerate(infiles):
        words = (sys.executable, program, count)
        boxes.append(server.box(*words, infile=infile, name=f"{number}.toml", env={"PYTHONPATH": path}))
        if not number:
            read_until(boxes[0].stderr, "waiting for nodes: ")
    results = [server.finish(box) for box in boxes]
    assert [result.code for result in results] == [0, 0], results
    assert sorted(line for one in results for line in one.lines) == [f"{rank} is done" for rank in range(5)]


LAYOUTS = {
    "in order": ("local_nodes=3\ntotal_nodes=5", "local_nodes=2\ntotal_nodes=5"),
    "mixed": ("ranks=[0, 1, 3]\ntotal_nodes=5", "ranks=[2, 4]\ntotal_nodes=5"),
}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_random_schedules(layout, server):
    carry_out_schedules(server, LAYOUTS[layout], 8)


@pytest.mark.stress
@pytest.mark.timeout(900)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_many_random_schedules(layout, server, monkeypatch):
    monkeypatch.setattr("launching.WATCHDOG_S", 800)
    carry_out_schedules(server, LAYOUTS[layout], 500)


def child(parent, name):
    """The child of a process that the system calls so."""
    [found] = [pid for pid in processes.children(parent) if processes.name(pid) == name]
    return found


@pytest.mark.parametrize(
    ("infiles", "places"),
    [
        (("local_nodes=3\ntotal_nodes=5", "local_nodes=2\ntotal_nodes=5"), [(0, 1, 2), (3, 4)]),
        (
            ("ranks=[2, 4]\ntotal_nodes=5\ngroup_id=7", "ranks=[0, 1, 3]\ntotal_nodes=5\ngroup_id=7"),
            [(2, 4), (0, 1, 3)],
        ),
        (("total_nodes=3", "total_nodes=3\nlocal_nodes=1", "ranks=[0]\ntotal_nodes=3"), [(1,), (2,), (0,)]),
    ],
)
def test_boxes_become_one_run(infiles, places, server):
    (server.folder / "code.txt").write_text(CODE)
    infiles = [f'code = "code.txt"\n{infile}' for infile in infiles]
    boxes = start(server, server.script(WHERE), *infiles, env={"SPCOMM_CODE": None})
    nodes, group = sum(map(len, places)), 7 if "group_id" in infiles[0] else 0
    numbers = {ranks: box for box, ranks in enumerate(sorted(places))}
    for box, ranks in zip(boxes, places, strict=True):
        result = server.finish(box)
        total = sum(range(nodes))
        expected = [f"{rank} {numbers[ranks]} {at} {group} {total}" for at, rank in enumerate(ranks)]
        assert (result.code, sorted(result.lines)) == (0, expected), result
        assert all(line.startswith("spcomm: waiting for nodes: ") for line in result.err.splitlines()), result
    answers = server.close_room()
    assert [answer.code for answer in answers] == [0], answers


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("comm.recv((comm.rank + 1) % 5)", 99, "spcomm: DEADLOCK — all 5 nodes wait"),
        ("comm.rank != 4 or 1 / 0\n    comm.barrier()", 1, "node 4 ended with an uncaught ZeroDivisionError"),
        ("comm.rank != 0 or sys.exit(7)\n    comm.barrier()", 7, "node 0 ended with exit code 7"),
        (
            "comm.rank != 3 or os.kill(os.getpid(), 9)\n    comm.barrier()",
            137,
            "node 3 was killed by SIGKILL",
        ),
    ],
)
@pytest.mark.slow
def test_both_shells_see_how_it_ends(text, code, words, server):
    program = server.script(
        "    import os, sys, spcomm\n    comm = spcomm.startup(infile=sys.argv[-1])\n    comm.barrier()\n    "
        + text
        + "\n"
    )
    infiles = ("ranks=[0, 1, 3]\ntotal_nodes=5", "ranks=[2, 4]\ntotal_nodes=5")
    for box in start(server, program, *infiles):
        result = server.finish(box)
        assert result.code == code and words in result.err, result
        assert code == 99 or words in result.last, result


@pytest.mark.parametrize(
    "whom", ["node", "supervisor", "box", "gateway", "server", "Ctrl-C", "interrupted node"]
)
def test_nothing_outlives_a_kill(whom, room):
    """All of it is noticed at once: nothing here waits for the link timeout."""
    server = room
    server.serve("--link-timeout", 3600)
    infiles = ("local_nodes=2\ntotal_nodes=4", "local_nodes=2\ntotal_nodes=4")
    boxes = start(server, server.script(WAITS), *infiles)
    lines = [line.split() for box in boxes for line in read_lines(box, 2)]
    pids = {int(rank): int(pid) for pid, rank in lines}
    if whom == "Ctrl-C":
        os.killpg(boxes[0].pid, signal.SIGINT)
    elif whom == "interrupted node":
        os.kill(pids[1], signal.SIGINT)
    else:
        killed = {
            "node": lambda: pids[0],
            "supervisor": lambda: child(pids[0], "spcomm superv"),
            "box": lambda: child(pids[0], "spcomm box"),
            "gateway": lambda: child(child(pids[0], "spcomm box"), "spcomm gw 0"),
            "server": lambda: server.server.pid,
        }[whom]()
        os.kill(killed, signal.SIGKILL)
    first, second = map(server.finish, boxes)
    is_interrupt = whom in ("Ctrl-C", "interrupted node")
    there = -signal.SIGKILL if whom == "node" else -signal.SIGINT if is_interrupt else 125
    assert first.code == there, first
    assert second.code == (1 if whom == "node" else 130 if is_interrupt else 125), second
    words = {
        "node": "node 0 died",
        "supervisor": "has ended, or the network to it has",
        "box": "has ended, or the network to it has",
        "gateway": "killed by SIGKILL",
        "server": "has ended: nothing listens at its port any more",
        "Ctrl-C": "interrupted by Ctrl-C",
        "interrupted node": "node 1 ended with an uncaught KeyboardInterrupt",
    }[whom]
    assert re.search(words, second.last), second
    assert re.findall(r"(was|were) (stopped|interrupted)", second.last) == [("were", "stopped")], second


def refused(server, infile, *words, **more):
    """A box that cannot take part: its exception, and what it says."""
    (box,) = start(server, server.script(WHERE), infile, **more)
    result = server.finish(box)
    assert result.code == 1, result
    for word in words:
        assert word in result.last, result


@pytest.mark.slow
def test_disagreements_are_refused(server):
    (first,) = start(server, server.script(WHERE), "ranks=[0, 1, 3]\ntotal_nodes=5")
    read_until(first.stderr, "3 of 5 are there")
    name = os.uname().nodename
    six = f"total_nodes=6: group 0 is to have 5 nodes, says {name}, which came first"
    refused(server, "local_nodes=2\ntotal_nodes=6", "spcomm.ConfigError", six)
    many = "3 nodes more are too many: 3 of the 5 nodes of group 0 are there"
    refused(server, "local_nodes=3\ntotal_nodes=5", "spcomm.ConfigError", many, "local_nodes=2")
    refused(server, "ranks=[3, 4]\ntotal_nodes=5", "spcomm.ConfigError", f"ranks: {name} has 3 already")
    refused(server, "ranks=[4, 5]\ntotal_nodes=5", "spcomm.ConfigError", "ranks has 5, and a run of 5 nodes")
    refused(server, "ranks=[4]\nlocal_nodes=2\ntotal_nodes=5", "gives ranks to 1 nodes, and this box has 2")
    refused(server, "local_nodes=2", "it says server = ", "say how many there are in all: total_nodes")
    env = {"SPCOMM_CODE": OTHER_CODE}
    refused(server, "total_nodes=2", "spcomm.ConfigError", "does not know that code", env=env)
    refused(server, "total_nodes=2", "needs the code that spcomm serve has shown", env={"SPCOMM_CODE": None})
    run = server("run", "--server", server.place, "-n", 2, "--boxes", 2, server.folder / "program.py", "")
    assert run.code == 125 and "group 0 has a run already: 3 on" in run.last, run
    # Another group waits for itself; it hears of this one.
    late = "after 1 s 1 of the 5 nodes of group 4 are there (1 on"
    refused(
        server, "total_nodes=5\ngroup_id=4\ntimeout=1", "spcomm.WaitTimeoutError", late, "group 0 has 3 of 5"
    )
    second = server.box(sys.executable, "program.py", infile="local_nodes=2\ntotal_nodes=5")
    assert [server.finish(box).code for box in (first, second)] == [0, 0]


def test_an_older_server_is_refused_in_one_sentence(room):
    server = Pretender(message(VERDICT, verdict=OTHER_VERSION, version=net.VERSION - 1))
    try:
        what = (
            f"the server at {server.place} speaks version {net.VERSION - 1} of the protocol between machines"
        )
        refused(room, "total_nodes=2", "spcomm.VersionError: startup", what, place=server.place)
    finally:
        server.close()


def test_a_server_of_another_spcomm_refuses_in_one_sentence(room):
    (room.folder / "sitecustomize.py").write_text(
        "from spcomm.launch.remote import versions\n"
        "versions.mine = lambda mine=versions.mine: {**mine(), 'spcomm': '0.0.1'}\n"
    )
    path = f"{room.folder}:{room.environment()['PYTHONPATH']}"
    room.serve(env={"PYTHONPATH": path})
    what = "the server has spcomm 0.0.1, and this machine has "
    refused(room, "total_nodes=2", "spcomm.VersionError: startup", what, "install the same version on both")


def test_statuses_are_those_of_c():
    header = Path(__file__).parents[2].joinpath("csrc/base/spc_error.h").read_text()
    numbers = dict(re.findall(r"X\((E\w+), (-\d+),", header))
    for name in ("EINVAL", "ESYSTEM", "ETIMEDOUT", "EVERSION", "EDISCONNECTED"):
        assert getattr(connect, name) == int(numbers[name])


def test_no_server_is_there(room):
    room.port = 1
    refused(room, "total_nodes=2", "spcomm.ConnectionLostError", "nothing listens at its port 1")


def test_who_leaves_while_others_wait_can_come_again(server):
    infiles = ("local_nodes=2\ntotal_nodes=5", "total_nodes=5")
    first, second = start(server, server.script(WHERE), *infiles)
    read_until(first.stderr, "3 of 5 are there")
    read_until(second.stderr, "3 of 5 are there")
    second.kill()
    read_until(first.stderr, "2 of 5 are there")
    os.killpg(first.pid, signal.SIGINT)
    assert server.finish(first).last == "KeyboardInterrupt"
    third, fourth = start(server, server.script(WHERE), "local_nodes=2\ntotal_nodes=3", "total_nodes=3")
    assert [server.finish(box).code for box in (third, fourth)] == [0, 0]


def test_ranks_that_nobody_asks_for_go_to_the_others():
    class Connection:
        name = "alpha"

    def seat(nodes, *ranks):
        about = {"nodes": nodes, "total": 6, "ranks": ranks, "program": "a.py", "sizes": {}}
        return Seat(Connection(), about)

    meeting = Meeting(0, 6)
    meeting.seats = [seat(2), seat(3, 4, 0, 2), seat(1)]
    assert meeting.number() == [0, 1, 0, 1, 0, 2]
    assert [one.ranks for one in meeting.seats] == [[4, 0, 2], [1, 3], [5]]
