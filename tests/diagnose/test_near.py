# SPDX-License-Identifier: MIT
"""SP108: a receive that fails says so if a message is there with another tag, or from another node."""

import pytest

START = """\
import spcomm
comm = spcomm.startup()
def told(call):
    try:
        call()
    except spcomm.SpcommError as error:
        print(type(error).__name__, *str(error).splitlines())
"""
TAG = "a different tag from the one requested.     (spcomm explain SP108)"
SENDER = "a different sender from the one requested.     (spcomm explain SP108)"

NEAR = {
    "tag-timeout": (
        "comm.recv(1, tag=7, timeout=0.05)",
        f"WaitTimeoutError recv(source=1, tag=7, timeout=0.05): no such message came to node 0 in that time. Here is, "
        f"though, a message from node 1 with tag 5: {TAG}",
    ),
    "sender-timeout": (
        "comm.recv(2, tag=5, timeout=0.05)",
        f"Here is, though, a message from node 1 with tag 5: {SENDER}",
    ),
    "any-sender": ("comm.recv(tag=8, timeout=0.05)", f"a message from node 1 with tag 5: {TAG}"),
    "message": ("comm.recv_message(1, tag=8, timeout=0.05)", f"a message from node 1 with tag 5: {TAG}"),
    "probe": ("comm.probe(1, tag=8, timeout=0.05)", f"a message from node 1 with tag 5: {TAG}"),
    "sendrecv": ("comm.sendrecv(0, 2, 1, tag=8, timeout=0.05)", f"a message from node 1 with tag 5: {TAG}"),
    "neither": ("comm.recv(2, tag=8, timeout=0.05)", ""),
    "of-no-node": ("comm.barrier(timeout=0.05)", ""),
}


@pytest.mark.parametrize("case", NEAR)
def test_a_message_that_nearly_matches(launch, case):
    call, words = NEAR[case]
    text = f"""
if comm.rank == 0:
    comm.probe(1)
    told(lambda: {call})
    comm.send(0, spcomm.OTHERS, tag=1)
else:
    if comm.rank == 1:
        comm.send(1, 0, tag=5)
    comm.recv(0, tag=1)
"""
    result = launch.program(START + text, options=("-n", 3))
    assert result.out.startswith("WaitTimeoutError "), result
    assert words in result.out and ("SP108" in result.out) == bool(words), result


def test_of_several(launch):
    text = """
for tag in (5, 6, 7):
    comm.send(1, 0, tag)
told(lambda: comm.recv(0, tag=8, timeout=0.05))
"""
    result = launch.program(START + text, options=("-n", 1))
    assert f"Here are, though, 3 messages, the first from node 0 with tag 5: {TAG}" in result.out, result


def test_of_a_node_that_has_finished(launch):
    text = """
if comm.rank == 1:
    comm.send(1, 0, tag=5)
else:
    told(lambda: comm.recv(1, tag=6))
    told(lambda: comm.recv(1, tag=5))
    told(lambda: comm.recv(1, tag=6))
"""
    first, second = launch.program(START + text, options=("-n", 2)).lines
    assert first.startswith("NodeLostError ") and "SP104" in first and TAG in first
    assert second.startswith("NodeLostError ") and "SP104" in second and "SP108" not in second


def test_in_a_part_ranks_are_those_of_the_run(launch):
    text = """
part = comm.split(comm.rank % 2)
if part.rank == 1:
    part.send(1, 0, tag=5)
elif comm.rank == 1:
    part.probe(1)
    told(lambda: part.recv(1, tag=6, timeout=0.05))
"""
    result = launch.program(START + text, options=("-n", 4))
    assert "a message from node 3 with tag 5" in result.out, result


def test_in_a_deadlock(launch):
    text = """
comm.send(1, (comm.rank + 1) % 2, tag=5)
comm.recv((comm.rank + 1) % 2, tag=6)
"""
    result = launch.program(START + text, options=("-n", 2))
    assert result.code == 99 and "with tag 5, and waits for one of tag 6" in result.err, result
