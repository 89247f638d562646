# SPDX-License-Identifier: MIT
"""comm.split: communicators of some of the nodes. That every operation works on them is shown elsewhere: the tests of
this folder also run on a part of a run (the options "part")."""

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spcomm
from nodetools import refused
from programs import ok, run

# Not those without an arena, which a communicator's memory comes from: see test_no_room.
pytestmark = pytest.mark.options("default", "small", "tree", "part", "nothing")


def expected(colors, keys):
    """{color: ranks in their new order}."""
    parts = {}
    for _, rank in sorted((keys[rank], rank) for rank in range(len(colors))):
        parts.setdefault(colors[rank], []).append(rank)
    parts.pop(None, None)
    return parts


def check(comm, colors, keys):
    with PartOrNone(comm, colors[comm.rank], keys[comm.rank]) as part:
        if part is None:
            assert colors[comm.rank] is None
            return
        members = expected(colors, keys)[colors[comm.rank]]
        assert part.size == len(members) and members[part.rank] == comm.rank
        assert part.members == tuple(comm.members[rank] for rank in members)
        assert part.global_sum(comm.rank) == sum(members)


class PartOrNone:
    """`with` for a split that may give None."""

    def __init__(self, comm, color, key):
        self.part = comm.split(color, key)

    def __enter__(self):
        return self.part

    def __exit__(self, *error):
        if self.part is not None:
            self.part.close()


def test_members_and_order(comm):
    """Everybody draws the same cases from the same seed, and compares with a sorted list."""

    @settings(max_examples=12, derandomize=True, database=None, deadline=None)
    @given(st.data())
    def one_case(data):
        colors = data.draw(
            st.lists(st.sampled_from([None, 0, 1, 2**40]), min_size=comm.size, max_size=comm.size)
        )
        keys = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=comm.size, max_size=comm.size))
        check(comm, colors, keys)

    one_case()
    comm.barrier()


def test_equal_keys_keep_the_order(comm):
    with comm.split() as part:
        assert part.members == comm.members and part.rank == comm.rank


@pytest.mark.sizes(2, 3, 4, 8)
def test_messages_of_two_communicators_never_meet(comm):
    with comm.split(comm.rank % 2) as part:
        for number in range(40):
            comm.send(("run", number), comm.rank)
            part.send(("part", number), part.rank)
        assert [part.recv() for _ in range(40)] == [("part", number) for number in range(40)]
        assert part.try_recv_message() is None
        assert [comm.recv() for _ in range(40)] == [("run", number) for number in range(40)]


@pytest.mark.sizes(4, 8)
def test_parts_of_parts_work_side_by_side(comm):
    """A grid: rows and columns, sums along both, and barriers in one while the others exchange."""
    width = comm.size // 2
    with comm.split(comm.rank // width) as row, comm.split(comm.rank % width) as column:
        assert (row.size, column.size) == (width, 2)
        assert row.global_sum(1) == width and column.global_sum(comm.rank) == comm.rank % width * 2 + width
        if row.rank == 0:
            for _ in range(50):
                column.barrier()
        row.send(np.full(3000, comm.rank), spcomm.ALL)
        for source in range(row.size):
            assert row.recv(source)[0] == comm.rank // width * width + source
        with row.split(row.rank) as alone:
            assert alone.size == 1 and alone.global_max(comm.rank) == comm.rank


@pytest.mark.sizes(2, 3, 4)
def test_results_outlive_their_communicator(comm):
    with comm.split() as part:
        part.send(np.arange(50_000.0), (part.rank + 1) % part.size)
        array = part.recv()
    del part
    gc.collect()
    for _ in range(3):
        with comm.split() as other:
            other.send(np.zeros(50_000), other.rank)
            other.recv()
    assert (array == np.arange(50_000.0)).all()


@pytest.mark.sizes(1, 2, 4)
def test_unreceived_messages_of_closed_parts_do_no_harm(comm):
    """They come into no later communicator, and do not fill up the queues."""
    for number in range(60):
        with comm.split() as part:
            assert part.try_recv_message() is None
            part.send(bytes(9000), part.rank, tag=number)
            part.barrier()
    assert comm.poll() == 0


@pytest.mark.near
@pytest.mark.sizes(2)
@pytest.mark.options("default")
def test_more_communicators_than_there_are_numbers(comm):
    """Each number is used again, twice; no message that was never received comes into a later communicator."""
    for turn in range(40_000):
        with comm.split() as part:
            if turn % 1000 < 2:
                part.send(turn, dest=1 - part.rank)
                assert part.recv() == turn
                part.send("nobody asks for it", dest=1 - part.rank)


@pytest.mark.sizes(3, 4)
def test_who_waits_for_one_that_left_is_told(comm):
    part = comm.split()
    lost = f"node {comm.members[1]}"
    if comm.rank == 1:
        part.send("last words", 0)
        part.close()
    elif comm.rank == 0:
        with refused(spcomm.NodeLostError, "recv(source=1, tag=9)", lost, "closed this communicator"):
            part.recv(1, tag=9)
        assert part.recv(1) == "last words"
        with refused(spcomm.NodeLostError, "barrier", lost, "closed this communicator"):
            part.barrier()
    comm.barrier()
    part.close()
    with refused(spcomm.SpcommError, "closed this communicator"):
        part.send(1, 0)
    part.close()


@pytest.mark.sizes(2, 3)
@pytest.mark.options("tiny")
def test_no_room(comm):
    with refused(spcomm.SpcommError, "split(color=0)", "no room", "--arena"):
        comm.split()
    comm.barrier()


def test_a_node_that_dies_is_known_in_every_part(tmp_path):
    result = run(
        tmp_path,
        4,
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher's, to nodes that are left
        part = comm.split(comm.rank % 2)
        if comm.rank == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            part.barrier() if comm.rank == 1 else comm.recv(3)
        except spcomm.NodeLostError as error:
            assert error.rank == (1 if comm.rank == 1 else 3), error
            print("told", comm.rank)
        """,
        "--grace",
        "60",
    )
    assert "told 1" in result.out
    assert "SIGKILL" in result.err


def test_an_open_part_at_exit(tmp_path):
    ok(
        run(
            tmp_path,
            3,
            """
            part = comm.split()
            part.send(1, spcomm.OTHERS)
            part.barrier()
            """,
        )
    )
