# SPDX-License-Identifier: MIT
"""Where a message can go: one, several, ALL, OTHERS, nobody; sendrecv."""

import numpy as np
import pytest

import spcomm
from nodetools import neighbours, refused, same


def expect(comm, source, value):
    message = comm.recv_message(source)
    assert message.source == source and same(message.data, value)


@pytest.mark.parametrize("kind", ["list", "tuple", "set", "range", "generator", "array", "numpy-ints"])
def test_iterables_of_ranks(comm, kind):
    ranks = range(comm.size)
    several = {
        "list": list(ranks), "tuple": tuple(ranks), "set": set(ranks), "range": ranks,
        "generator": (rank for rank in ranks), "array": np.arange(comm.size),
        "numpy-ints": [np.int32(rank) for rank in ranks],
    }  # fmt: skip
    comm.send(comm.rank, several[kind], tag=5)
    for source in ranks:
        assert comm.recv(source, 5) == source


def test_ranks_as_numpy_integers(comm):
    following, previous = neighbours(comm)
    comm.send("x", np.int64(following), np.uint8(200))
    assert comm.recv(np.int16(previous), np.int32(200)) == "x"


@pytest.mark.smoke
def test_all_and_others(comm):
    comm.send(("all", comm.rank), spcomm.ALL)
    comm.send(("others", comm.rank), spcomm.OTHERS)
    for source in range(comm.size):
        expect(comm, source, ("all", source))
        if source != comm.rank:
            expect(comm, source, ("others", source))


def test_nobody(comm):
    """PROC_NULL, an empty list, and OTHERS of a run of one node: nothing is sent."""
    comm.send("x", spcomm.PROC_NULL)
    comm.send("x", [])
    comm.send("x", iter(()))
    comm.send("x", [spcomm.PROC_NULL])
    if comm.size == 1:
        comm.send("x", spcomm.OTHERS)
    comm.barrier()
    assert comm.try_recv_message() is None


def test_proc_null_among_others_is_skipped(comm):
    comm.send("x", [comm.rank, spcomm.PROC_NULL])
    assert comm.recv() == "x"


def test_the_same_rank_twice(comm):
    """Either one message or a refusal that names the rank; never two."""
    try:
        comm.send("twice", [comm.rank, comm.rank])
    except (ValueError, spcomm.SpcommError) as error:
        assert str(comm.rank) in str(error)
    else:
        assert comm.recv() == "twice"
    assert comm.try_recv_message() is None


@pytest.mark.smoke
def test_sendrecv_round_the_ring(comm):
    following, previous = neighbours(comm)
    token = comm.rank
    for _ in range(comm.size):
        token = comm.sendrecv(token, following, previous)
    assert token == comm.rank
    assert comm.sendrecv("any", following) == "any"


def test_sendrecv_at_the_borders(comm):
    """The halo exchange of a line: PROC_NULL beyond its ends."""
    left = comm.rank - 1 if comm.rank > 0 else spcomm.PROC_NULL
    right = comm.rank + 1 if comm.rank + 1 < comm.size else spcomm.PROC_NULL
    from_left = comm.sendrecv(comm.rank, right, left)
    from_right = comm.sendrecv(comm.rank, left, right)
    assert from_left == (comm.rank - 1 if comm.rank > 0 else None)
    assert from_right == (comm.rank + 1 if comm.rank + 1 < comm.size else None)


@pytest.mark.sizes(2, 3, 4)
def test_sendrecv_times_out_with_the_message_sent(comm):
    """Everybody sends to itself and waits for the next node, who sends it nothing."""
    following, _ = neighbours(comm)
    with refused(spcomm.WaitTimeoutError, "sendrecv", following):
        comm.sendrecv("sent", comm.rank, source=following, timeout=0)
    assert comm.recv() == "sent"


def test_arguments_are_not_changed(comm):
    ranks = [comm.rank]
    array = np.arange(100_000)
    value = {"a": array, "b": [1]}
    comm.send(value, ranks)
    assert ranks == [comm.rank] and value["a"] is array and np.array_equal(array, np.arange(100_000))
    comm.recv()
