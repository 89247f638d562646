# SPDX-License-Identifier: MIT
"""Frames that cross the link of each box to the server: as many as an operation needs, and not one more.

Frames that keep the links going (HELLO, ACKNOWLEDGE), give credit (CREDIT) or tell of nodes (STATUS, NOTE)
depend on when they are sent, and are not counted here.
"""

import os
import signal

import pytest

from netting import stop, transports
from pairwise import each
from processes import read_lines

PLACES = (0, 0, 1, 0, 1, 2)  # nodes 0, 1, 3 | 2, 4 | 5
COUNTED = ("message", "arrive", "receipt")
RELAY = ("--route", "relay", "--stats=all")

# The operations: of node 0 alone, while its gateway is stopped and so sees all of it at once; then of everybody.
PROGRAM = """
    import os, sys, numpy as np, spcomm
    comm = spcomm.startup()
    name, times = sys.argv[1], int(sys.argv[2])
    long = np.arange(125_000.0)
    value = long if "long" in name else 7
    part = None

    def send(targets):
        def sends():
            comm.send(value, targets)
        def takes():
            if comm.rank in targets and comm.rank:
                comm.recv(0)
        return sends, takes

    def bcast():
        assert np.array_equal(comm.bcast(value if comm.rank == 0 else None, 0), value)

    def ssend():
        comm.ssend(value, 2) if comm.rank == 0 else comm.rank == 2 and comm.recv(0)

    def cycle():
        for target in (1, 2, 4):
            comm.coordinated_send(value, target)
        assert len(list(comm.coordinated_messages())) == (comm.size if comm.rank in (1, 2, 4) else 0)

    def nothing():
        pass

    def everybody(call):
        return nothing, call

    def within(ranks, call):
        def calls():
            if comm.rank in ranks:
                call()
        return nothing, calls

    if name.startswith("part"):
        ranks = [0, 1] if "box" in name else [0, 2, 3, 4]
        part = comm.split(0 if comm.rank in ranks else 1)
    first, rest = {
        "nothing": lambda: everybody(nothing),
        "send to a node of the same box": lambda: send([1]),
        "send": lambda: send([2]),
        "a long send": lambda: send([2]),
        "multicast": lambda: send([1, 2, 4, 5]),
        "a long multicast": lambda: send([1, 2, 4, 5]),
        "multicast to one other box": lambda: send([2, 3, 4]),
        "to all others": lambda: send([1, 2, 3, 4, 5]),
        "bcast": lambda: everybody(bcast),
        "barrier": lambda: everybody(comm.barrier),
        "sum": lambda: everybody(lambda: comm.global_sum(comm.rank)),
        "sum of a tuple": lambda: everybody(lambda: comm.global_sum((1, 2.0))),
        "allreduce": lambda: everybody(lambda: comm.allreduce(np.arange(100))),
        "fuzzy barrier": lambda: everybody(lambda: comm.fuzzy_barrier().wait()),
        "ssend": lambda: everybody(ssend),
        "cycle": lambda: everybody(cycle),
        "part: barrier in a box": lambda: within(ranks, part.barrier),
        "part: barrier": lambda: within(ranks, part.barrier),
        "part: sum": lambda: within(ranks, lambda: part.global_sum(1)),
    }[name]()
    print(comm.rank, os.getpid(), flush=True)
    if comm.rank == 0:
        input()
        for _ in range(times):
            first()
        print("sent", flush=True)
    for _ in range(times):
        rest()
"""


def counts(net, name, times):
    """{kind: [frames out of each box, frames into each box]}"""
    process = net.start(
        "-n", len(PLACES), "--map", ",".join(map(str, PLACES)), *RELAY, net.script(PROGRAM), name, times, stdin=-1,
    )  # fmt: skip
    nodes = dict(map(int, line.split()) for line in read_lines(process, len(PLACES)))
    gateway = transports(net, process, nodes.values())["spcomm gw 0"]
    stop(gateway)
    process.stdin.write(b"\n")
    assert read_lines(process, 1) == ["sent"]
    os.kill(gateway, signal.SIGCONT)
    result = net.finish(process)
    assert result.code == 0, result
    lines = result.err.partition("spcomm: frames between boxes")[2].splitlines()[1:]
    names = lines[0].split()[1:]
    rows = [line.split() for line in lines[1:]]
    assert [row[:2] for row in rows] == [[str(box), way] for box in range(3) for way in ("out", "in")]
    found = {kind: [[], []] for kind in COUNTED}
    for _box, way, *cells in rows:
        row = dict(zip(names, cells, strict=True))
        for kind in COUNTED:
            found[kind][way == "in"].append(int(row.get(kind, 0)))
    return found


def messages(out, into):
    return {"message": [out, into]}


TO_ALL = {
    "arrive": [[1, 1, 1], [1, 1, 1]]
}  # each box says that its nodes have come, and hears once of all others
TO_PART = {"arrive": [[1, 1, 0], [1, 1, 0]]}

# The cost of each: frames out of boxes 0, 1, 2, and into them. A million bytes are four parts.
COSTS = {
    "nothing": {},
    "send to a node of the same box": {},
    "send": messages([1, 0, 0], [0, 1, 0]),
    "a long send": messages([4, 0, 0], [0, 4, 0]),
    "multicast": messages([1, 0, 0], [0, 1, 1]),
    "a long multicast": messages([4, 0, 0], [0, 4, 4]),
    "multicast to one other box": messages([1, 0, 0], [0, 1, 0]),
    "to all others": messages([1, 0, 0], [0, 1, 1]),
    "bcast": TO_ALL,
    "barrier": TO_ALL,
    "sum": TO_ALL,
    "sum of a tuple": TO_ALL,
    "allreduce": TO_ALL,
    "fuzzy barrier": TO_ALL,
    "ssend": messages([1, 0, 0], [0, 1, 0]) | {"receipt": [[0, 1, 0], [1, 0, 0]]},
    "cycle": messages([6, 2, 3], [3, 8, 0]) | TO_ALL,  # of each node one to each of nodes 1, 2 and 4
    "part: barrier in a box": {},
    "part: barrier": TO_PART,
    "part: sum": TO_PART,
}
SPLIT = {"arrive": [[2, 2, 2], [2, 2, 2]]}  # it takes two collective steps


@pytest.mark.parametrize("name", each(3, COSTS))
def test_frames_of_an_operation(net, name):
    """Credit may be short in a second long multicast, and then not all receivers get it together."""
    times = 1 if name == "a long multicast" else 3
    found = counts(net, name, times)
    for kind in COUNTED:
        once = COSTS[name].get(kind, [[0] * 3] * 2)
        before = SPLIT.get(kind, [[0] * 3] * 2) if name.startswith("part") else [[0] * 3] * 2
        assert found[kind] == [
            [one * times + more for one, more in zip(*way, strict=True)]
            for way in zip(once, before, strict=True)
        ], kind


@pytest.mark.parametrize("boxes", [2, 8])
def test_values_of_a_reduction_cross_each_link_once(net, boxes):
    """1 MiB from each node: a box of one node sends that, and gets the sum, however many boxes there are."""
    script = net.script("""
        import numpy as np, spcomm
        comm = spcomm.startup()
        total = comm.allreduce(np.full(1 << 17, comm.rank + 1.0))
        assert (total == comm.size * (comm.size + 1) / 2).all()
    """)
    result = net.finish(net.start("-n", boxes, "--boxes", boxes, *RELAY, script))
    assert result.code == 0, result
    lines = result.err.partition("spcomm: frames between boxes")[2].splitlines()[2:]
    megabytes = [float(line.split()[-1]) for line in lines]
    assert len(megabytes) == 2 * boxes
    assert all(1.0 <= number <= 1.3 for number in megabytes), result.err


def test_a_barrier_comes_down_as_one_arrival(net):
    """Up go the arrivals of 8 nodes, down comes one for all 16; with those of the others both would be as long."""
    script = net.script("""
        import spcomm
        comm = spcomm.startup()
        for _ in range(500):
            comm.barrier()
            comm.fuzzy_barrier().wait()
    """)
    result = net.finish(net.start("-n", 16, "--boxes", 2, *RELAY, script))
    assert result.code == 0, result
    lines = result.err.partition("spcomm: frames between boxes")[2].splitlines()[2:]
    out0, in0, out1, in1 = (float(line.split()[-1]) for line in lines)
    assert in0 < out0 and in1 < out1, result.err
