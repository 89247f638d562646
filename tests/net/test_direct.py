# SPDX-License-Identifier: MIT
"""`--route direct`, the default: from box to box where that works from the start, and else through the server."""

import os
import signal

import pytest

from launching import planned
from netting import HERE, transports
from processes import read_lines
from spcomm.launch.cmdline.groups import choose_route
from spcomm.launch.cmdline.options import parse

PROGRAM = HERE / "all_operations.py"
PLACES = {2: "0,0,1,0,1", 3: "0,1,2,0,1"}
PAIRS = {2: ["0-1"], 3: ["0-1", "0-2", "1-2"]}


def between(result):
    """The table of frames between gateways: {(boxes, way): {column: cell}}"""
    lines = result.err.partition("spcomm: frames between gateways")[2].splitlines()[1:]
    names = lines[0].split()[1:] if lines else []
    rows = [line.split() for line in lines[1:] if line.startswith("  ")]
    return {(row[0], row[1]): dict(zip(names, row[2:], strict=True)) for row in rows}


def run(net, seed, boxes=2, least=6, **environment):
    net.meddles = True
    done = net.folder / "done"
    if net.proxy is None or not net.proxy.left:
        done.touch()
    result = net(
        "-n", 5, "--map", PLACES[boxes], "--route", "direct", "--link-timeout", 6, "--stats=all", PROGRAM, seed,
        done, least, env=environment,
    )  # fmt: skip
    assert result.code == 0, (seed, net.proxy and net.proxy.happened, result)
    assert len(result.lines) == 5 and len({line.split()[1] for line in result.lines}) == 1, result
    return result


@pytest.mark.slow
@pytest.mark.parametrize("boxes", PLACES)
def test_everything_goes_from_box_to_box(net, boxes):
    found = between(run(net, 1, boxes))
    assert list(found) == [(pair, way) for pair in PAIRS[boxes] for way in ("out", "in")]
    for row in found.values():
        assert int(row["message"]) > 0 and int(row["arrive"]) > 0


@pytest.mark.parametrize("boxes", PLACES)
@pytest.mark.slow
def test_the_relay_where_no_connection_can_be_made(net, boxes):
    result = run(net, 3, boxes, SPCOMM_TEST_NOWHERE="1")
    assert f"no direct connection between boxes {', '.join(PAIRS[boxes])}: the server relayed" in result.err
    assert between(result) == {}


@pytest.mark.slow
@pytest.mark.whole
def test_connections_that_break(net):
    done = net.folder / "done"
    net.through(faults=10, seed=5, every=20_000, done=done.touch)
    run(net, 4)
    assert net.proxy.left == 0


@pytest.mark.slow
def test_a_connection_that_stays_away_ends_the_run(net):
    proxy = net.through(faults=0, seed=1)
    process = net.start(
        "-n", 2, "--boxes", 2, "--route", "direct", "--link-timeout", 4,
        net.script("""
            import spcomm
            comm = spcomm.startup()
            comm.barrier()
            print("met", flush=True)
            try:
                comm.recv()
            except spcomm.ConnectionLostError as error:
                print("lost", flush=True)
                raise
        """),
        env={"SPCOMM_TEST_ONCE": net.folder / "once"},
    )  # fmt: skip
    read_lines(process, 2)
    (net.folder / "once").touch()
    proxy.reset()
    result = net.finish(process)
    assert result.code == 125 and result.lines == ["lost"] * 2, result
    assert "cannot reach each other: the connection between them broke" in result.last, result


def test_a_message_is_a_frame_and_a_barrier_one_for_each_box(net):
    result = net(
        "-n", 4, "--map", "0,1,2,2", "--route", "direct", "--stats=all",
        net.script("""
            import spcomm
            comm = spcomm.startup()
            for number in range(7):
                if comm.rank == 0:
                    comm.send(number, 1)
                elif comm.rank == 1:
                    comm.recv(0)
                comm.barrier()
        """),
    )  # fmt: skip
    assert result.code == 0, result
    found = between(result)
    assert [row["arrive"] for row in found.values()] == ["7"] * 6
    assert [row["message"] for row in found.values()] == ["7", "0", "0", "0", "0", "0"]


@pytest.mark.parametrize("who", ["server", "gw 1"])
def test_a_killed_transport_process(net, who):
    process = net.start(
        "-n", 2, "--boxes", 2, "--route", "direct",
        net.script("""
            import os, signal, spcomm
            comm = spcomm.startup()
            comm.barrier()
            print(comm.rank, os.getpid(), flush=True)
            try:
                while comm.rank == 1:  # if both were in recv(), a deadlock could be proven before the kill
                    comm.try_recv_message()
                comm.recv()
            except spcomm.ConnectionLostError as error:
                print("lost", flush=True)
            signal.pause()  # who ended now could be missed by the other before it hears what has happened
        """),
    )  # fmt: skip
    nodes = dict(map(int, line.split()) for line in read_lines(process, 2))
    os.kill(transports(net, process, nodes.values())[f"spcomm {who}"], signal.SIGKILL)
    result = net.finish(process)
    assert result.code == 125 and result.lines == ["lost"] * 2 and "SIGKILL" in result.last, result


@pytest.mark.parametrize(
    ("words", "route"),
    [
        ("-n 8 --boxes 8", "direct"),
        ("-n 9 --boxes 9", "relay"),
        ("-n 9 --boxes 9 --route direct", "direct"),
        ("-n 2 --boxes 2 --route relay", "relay"),
        ("-n 2 --boxes 2 --listen 127.0.0.1", "direct"),
        ("-n 2 --boxes 2 --server desk", "relay"),
        ("--host a,b", "relay"),
        ("--host a,b --tunnel none", "direct"),
        ("--host a,b --listen 127.0.0.1", "direct"),
    ],
)
def test_boxes_that_reach_each_other_are_connected(words, route):
    line = [*words.split(), "x.py"]
    _plans, groups = planned(line)
    assert choose_route(groups, parse(line)) == route
