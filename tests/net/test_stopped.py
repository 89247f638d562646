# SPDX-License-Identifier: MIT
"""A process that stops for less than the link timeout delays only those that wait for it; one that stops for longer
ends the run."""

import os
import select
import signal

import pytest

from netting import stop, transports
from pairwise import each
from processes import read_lines

# Nodes 0 and 1 are in box 0, nodes 2 and 3 in box 1. A line that the test writes says when to go on.
EXCHANGES = """
    import os, sys, spcomm
    comm = spcomm.startup()

    def exchange(nodes, count):
        for number in range(count):
            others = [other for other in nodes if other != comm.rank]
            comm.send((comm.rank, number, bytes(number * 300)), others, tag=number)
            for other in others:
                assert comm.recv(other, number) == (other, number, bytes(number * 300))

    everybody = range(comm.size)
    exchange(everybody, 20)
    some = list(map(int, sys.argv[1:]))
    part = comm.split(0 if comm.rank in some else 1)
    print(comm.rank, os.getpid(), flush=True)
    if comm.rank == 0:
        input()  # something has been stopped
    if comm.rank in some:
        part.barrier()
        exchange(some, 100)
        assert part.global_sum(1) == len(some)
        if comm.rank == 0:
            print("some", flush=True)
    exchange(everybody, 50)
    assert comm.global_sum(comm.rank) == 6
    print(comm.rank, "over", flush=True)
"""


def start(net, some=(0, 1)):
    process = net.start(
        "-n", 4, "--boxes", 2, "--link-timeout", 30, "--stall", 0, net.script(EXCHANGES), *some,
        stdin=-1,
    )  # fmt: skip
    nodes = dict(map(int, line.split()) for line in read_lines(process, 4))
    return process, nodes, transports(net, process, nodes.values())


def finish(net, process):
    result = net.finish(process)
    assert result.code == 0 and result.err == "", result
    assert sorted(result.lines) == [f"{rank} over" for rank in range(4)], result


@pytest.mark.parametrize("who", ["spcomm gw 0", "spcomm gw 1", "spcomm server"])
def test_the_others_of_a_box_go_on(net, who):
    process, _nodes, found = start(net)
    stop(found[who])
    process.stdin.write(b"\n")
    assert read_lines(process, 1) == ["some"]
    os.kill(found[who], signal.SIGCONT)
    finish(net, process)


@pytest.mark.slow
@pytest.mark.parametrize("who", each(3, ["spcomm gw 0", "spcomm gw 1", "spcomm server"]))
def test_until_the_connection_is_given_up_and_made_again(net, who):
    """After a third of the timeout the other end closes it, which the proxy sees."""
    proxy = net.through()
    process, _nodes, found = start(net)
    stop(found[who])
    process.stdin.write(b"\n")
    assert read_lines(process, 1) == ["some"]
    assert proxy.ended.acquire(timeout=60)
    os.kill(found[who], signal.SIGCONT)
    finish(net, process)


def test_a_stopped_node_of_one_box_does_not_hold_up_the_others(net):
    process, nodes, _found = start(net, (0, 1, 2))
    stop(nodes[3])
    process.stdin.write(b"\n")
    assert read_lines(process, 1) == ["some"]
    os.kill(nodes[3], signal.SIGCONT)
    finish(net, process)


@pytest.mark.slow
def test_the_server_gives_up_boxes_of_which_nothing_comes(net):
    """Nothing at all comes to it any more, so only its clock can wake it."""
    waits = net.script("""
        import os, signal, spcomm
        comm = spcomm.startup()
        comm.barrier()
        print(comm.rank, os.getpid(), flush=True)
        comm.recv(0) if comm.rank == 1 else signal.pause()
    """)
    process = net.start("-n", 2, "--boxes", 2, "--link-timeout", 2, "--stall", 0, waits)
    nodes = dict(map(int, line.split()) for line in read_lines(process, 2))
    found = transports(net, process, nodes.values())
    for gateway in ("spcomm gw 0", "spcomm gw 1"):
        stop(found[gateway])
    result = net.finish(process)
    assert result.code == 125, result
    assert "is lost:" in result.last, result


# Node 1 ends when the test says so. Node 0 sends to it after that, and the others to whom it sends receive.
LATE = """
    import os, sys, spcomm
    comm = spcomm.startup()
    comm.barrier()
    print(comm.rank, os.getpid(), flush=True)
    if comm.rank == 0:
        input()  # node 1 has ended, and a gateway is stopped
        for tag, size in enumerate((0, 41, 9_000, 3_000_000)):
            comm.send(bytes(size), 1, tag=tag)
            comm.send(bytes(size), spcomm.OTHERS, tag=10 + tag)
        print("sent", flush=True)
    elif comm.rank == 1:
        open(sys.argv[1]).read()
    else:
        for tag, size in enumerate((0, 41, 9_000, 3_000_000)):
            assert comm.recv(0, tag=10 + tag) == bytes(size)
"""


@pytest.mark.linux("a descriptor of a process")
@pytest.mark.spread("route", "buffers")
@pytest.mark.parametrize("who", ["spcomm gw 0", "spcomm gw 1"])
@pytest.mark.parametrize("map", ["0,1", "0,1,1", "0,1,2"])
@pytest.mark.parametrize("route", ["relay", "direct"])
@pytest.mark.parametrize("buffers", ["", "--slots 1 --ring 4096 --arena 0", "--slots 2 --arena 64K"])
def test_messages_to_a_node_that_has_ended_elsewhere_are_counted_once(
    net, who, map, route, buffers, tmp_path
):
    """Its box still exists, or it is the only node there; the box of node 0 knows of the end before they are sent on,
    or after."""
    os.mkfifo(tmp_path / "end")
    nodes = map.count(",") + 1
    options = ("-n", nodes, "--map", map, "--route", route, "--stall", 0, "--strict", *buffers.split())
    process = net.start(*options, net.script(LATE), tmp_path / "end", stdin=-1)
    ids = dict(tuple(int(word) for word in line.split()) for line in read_lines(process, nodes))
    gateway = transports(net, process, ids.values())[who]
    stop(gateway)
    ended = os.pidfd_open(ids[1])
    open(tmp_path / "end", "w").close()
    select.select([ended], [], [])
    os.close(ended)
    process.stdin.write(b"\n")
    assert read_lines(process, 1) == ["sent"]
    os.kill(gateway, signal.SIGCONT)
    result = net.finish(process)
    found = [
        " ".join(line.split()[:10]) for line in result.err.splitlines() if line.startswith("  1 message")
    ]
    assert found == [f"1 message from node 0 to node 1 tag {tag}" for tag in (0, 1, 2, 3, 10, 11, 12, 13)], (
        result
    )
    assert result.code == 1 and result.last.endswith("SP106 of node 1 (exit code 1)"), result
