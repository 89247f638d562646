# SPDX-License-Identifier: MIT
"""--queue-limit: what send() has accepted can be received, whatever lies before it; what a report says of the limit."""

import re

import pytest

DEADLOCK = 99

# All below their limit, and beyond the share of it that a receiver has for each sender.
ACCEPTED = {
    "by descending tag": (
        ["-n", 4, "--arena", 0, "--queue-limit", "1M"],
        """
        for tag in range(60):
            comm.send(bytes(10_000), (comm.rank + 1) % comm.size, tag)
        for tag in reversed(range(60)):
            assert len(comm.recv(tag=tag)) == 10_000
        """,
    ),
    "for a handler": (
        ["-n", 2, "--arena", 0, "--queue-limit", "2M"],
        """
        if comm.rank == 0:
            comm.recv(1)
            comm.send(b"left", 1, tag=1)
            comm.send(bytes(1_500_000), 1, tag=9)
            comm.recv(1)
        else:
            comm.handler(9)(lambda message: comm.send(len(message.data), 0))
            comm.send("handles", 0)
        comm.barrier()
        if comm.rank == 1:
            assert comm.recv(0, tag=1) == b"left"
        """,
    ),
    "in a gather": (
        ["-n", 4, "--boxes", 2, "--arena", 0, "--queue-limit", "1M"],
        """
        others = [rank for rank in range(comm.size) if rank != comm.rank]
        for number in range(5):
            for rank in others:
                comm.send(bytes(60_000), rank, tag=number)
        assert [len(part) for part in comm.allgather(bytes(100_000))] == [100_000] * comm.size
        before = comm.exscan(np.full(20_000, 1))
        assert before is None if comm.rank == 0 else (before == comm.rank).all()
        comm.barrier()
        for number in range(5):
            for rank in others:
                assert len(comm.recv(rank, tag=number)) == 60_000
        """,
    ),
    "in a split": (
        ["-n", 2, "--arena", "1M", "--queue-limit", "256K"],
        """
        for _ in range(40):
            comm.send(bytes(4_000), comm.rank, tag=1)
        part = comm.split(comm.rank)
        part.barrier()
        for _ in range(40):
            assert len(comm.recv(comm.rank, tag=1)) == 4_000
        """,
    ),
}
BEGIN = "import numpy as np\nimport spcomm\n\ncomm = spcomm.startup()\n"


def program(launch, text):
    lines = text.strip("\n").splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    return launch.script(BEGIN + "".join(f"{line[margin:]}\n" for line in lines))


@pytest.mark.parametrize("how", ACCEPTED)
def test_what_was_accepted_is_received(launch, how):
    options, text = ACCEPTED[how]
    result = launch(*options, program(launch, text))
    assert result.code == 0, result


FULL = """
if comm.rank == 0:
    for _ in range(1000):
        comm.send(bytes(10_000), 1)
comm.barrier()
"""


def test_the_limit_that_would_be_enough_is_named(launch):
    result = launch("-n", 2, "--arena", 0, "--queue-limit", "64K", program(launch, FULL))
    assert result.code == DEADLOCK, result
    assert "Node 0 sends more to node 1 than the queues hold, and nobody receives it." in result.err
    found = re.search(r"--queue-limit (\d+)K lets these sends go on, and only moves the point", result.err)
    assert found and int(found.group(1)) > 64, result


@pytest.mark.parametrize("boxes", [1, 2])
def test_a_flooder_stops_itself_and_nobody_else(launch, boxes):
    """Node 0 floods node 2, which waits for node 1; that one gets through, and node 2 does not grow without bound."""
    text = """
    limit = 1 << 20
    if comm.rank == 0:
        sent = 0
        while True:
            try:
                comm.send(bytes(20_000), 2, timeout=0.2)
            except spcomm.WaitTimeoutError:
                break
            sent += 1
            assert sent * 20_000 < 8 * limit, "nothing bounds it"
        comm.send(sent, 1, tag=7)
        comm.send(sent, 2, tag=8, timeout=None)
    elif comm.rank == 1:
        comm.send(comm.recv(0, tag=7), 2, tag=9)
    else:
        sent = comm.recv(1, tag=9)
        for _ in range(sent):
            assert len(comm.recv(0, tag=0)) == 20_000
        assert comm.recv(0, tag=8) == sent
    """
    map_ = ["--map", "0,1,1"] if boxes == 2 else []
    result = launch("-n", 3, *map_, "--arena", 0, "--queue-limit", "1M", program(launch, text))
    assert result.code == 0, result
