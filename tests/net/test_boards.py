# SPDX-License-Identifier: MIT
"""Boxes that are stopped or cut off while everybody waits are no deadlock; and one that is, is found.

Every node waits, and a message is on its way: it lies in what is stopped. That the launcher warns of it as a stall is
the event that shows that there was time for many looks.
"""

import os
import signal

import pytest

from netting import stop, transports
from processes import read_lines

# Nodes 0 and 1 are in box 0, nodes 2 and 3 in box 1. Node 0 sends what ends all waits, once it is told to.
WAITS = """
    import os, sys, spcomm
    comm = spcomm.startup()
    comm.barrier()
    print(comm.rank, os.getpid(), flush=True)
    if comm.rank == 0:
        input()
        comm.send("begin", 2)
        comm.recv(3)
    elif comm.rank == 2:
        comm.recv(0)
        comm.send("go on", 3)
    elif comm.rank == 3:
        comm.recv(2)
        comm.send("over", 0)
    comm.barrier()
    if sys.argv[1:]:
        comm.recv((comm.rank + 1) % comm.size, tag=9)
"""
DEADLOCK = 99


def start(net, *arguments):
    process = net.start(
        "-n", 4, "--boxes", 2, "--route", "relay", "--stall", 0.5, "--link-timeout", 600, net.script(WAITS),
        *arguments, stdin=-1,
    )  # fmt: skip
    nodes = dict(map(int, line.split()) for line in read_lines(process, 4))
    return process, nodes, transports(net, process, nodes.values())


def read_until(process, words):
    """Lines on stderr, up to one with these words."""
    found = [b" "]
    while found[-1] and words.encode() not in found[-1]:
        found.append(process.stderr.readline())
    assert found[-1], f"nobody said: {words}, but\n{b''.join(found).decode()}"


WHO = ["spcomm gw 0", "spcomm gw 1", "spcomm server"]


@pytest.mark.slow
@pytest.mark.parametrize("who", WHO)
def test_what_is_stopped_between_boxes(net, who):
    process, _nodes, found = start(net)
    stop(found[who])
    process.stdin.write(b"\n")
    read_until(process, "All nodes wait. Something is still on its way between the boxes")
    os.kill(found[who], signal.SIGCONT)
    result = net.finish(process)
    assert result.code == 0 and "DEADLOCK" not in result.err, result


@pytest.mark.slow
@pytest.mark.parametrize("who", [2, 3])
def test_a_stopped_node(net, who):
    """It has been told of a message, and has not looked at it."""
    process, nodes, _found = start(net)
    stop(nodes[who])
    process.stdin.write(b"\n")
    read_until(process, "wait")
    os.kill(nodes[who], signal.SIGCONT)
    result = net.finish(process)
    assert result.code == 0 and "DEADLOCK" not in result.err, result


@pytest.mark.slow
def test_a_connection_that_breaks(net):
    """Again and again, while everybody waits."""
    proxy = net.through(faults=30, seed=1, every=200)
    process, _nodes, _found = start(net)
    process.stdin.write(b"\n")
    result = net.finish(process)
    assert result.code == 0 and "DEADLOCK" not in result.err, (proxy, result)


@pytest.mark.parametrize("who", WHO)
def test_a_deadlock_is_told_once_all_boxes_answer(net, who):
    process, _nodes, found = start(net, "for ever")
    stop(found[who])
    process.stdin.write(b"\n")
    read_until(process, "All nodes wait")
    os.kill(found[who], signal.SIGCONT)
    result = net.finish(process)
    assert result.code == DEADLOCK and "circle: 0 → 1 → 2 → 3 → 0" in result.err, result


@pytest.mark.slow
def test_a_deadlock_through_connections_that_break(net):
    net.through(faults=10, seed=2, every=500)
    process, _nodes, _found = start(net, "for ever")
    process.stdin.write(b"\n")
    result = net.finish(process)
    assert result.code == DEADLOCK and "circle: 0 → 1 → 2 → 3 → 0" in result.err, result


# ---- hosts


@pytest.mark.slow
@pytest.mark.parametrize("where", ["a:2,b:2", "localhost:1,b:3", "a:3,localhost:1"])
def test_a_deadlock_of_hosts(launch, ssh, where):
    program = """
        import spcomm
        comm = spcomm.startup()
        if comm.rank < 3:
            comm.barrier()
        comm.recv(0, tag=7)
    """
    path = launch.script(program)
    one = launch("-n", 4, path)
    several = launch("--host", where, "--ssh", ssh, path)
    assert one.code == several.code == DEADLOCK, several
    assert one.err == several.err
