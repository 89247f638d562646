# SPDX-License-Identifier: MIT
"""Arrays and scalars of NET_INT and NET_DOUBLE as messages, in collectives and in reductions."""

import numpy as np
import pytest

import spcomm
from net_arrays import KINDS, WIDE, foreign, mixed
from nodetools import neighbours, pass_on, refused
from spcomm import NET_DOUBLE, NET_INT, NetDouble, NetInt

both = pytest.mark.parametrize("kind", KINDS)
LENGTHS = (0, 1, 5, 1000, 100_000)  # in a slot, in the ring, in a block of the arena


def numbers(rank, length):
    return [rank * 1000 + i % 777 for i in range(length)]


@both
@pytest.mark.parametrize("length", LENGTHS)
def test_bytes_travel_as_they_are(comm, kind, length):
    """As a memcpy to another machine: foreign elements stay foreign until they are read."""
    array = foreign(kind, numbers(comm.rank, length))
    _following, previous = neighbours(comm)
    arrived = pass_on(comm, array)
    assert arrived.dtype is KINDS[kind] and arrived.flags.writeable
    assert arrived.tobytes() == foreign(kind, numbers(previous, length)).tobytes()
    assert spcomm.foreign_count(arrived) == length
    assert arrived.astype(WIDE[kind]).tolist() == numbers(previous, length)
    spcomm.localize(arrived)
    assert spcomm.foreign_count(arrived) == 0 and arrived.tolist() == numbers(previous, length)


@both
def test_into_an_array_of_the_receiver(comm, kind):
    _following, previous = neighbours(comm)
    out = np.zeros(3, KINDS[kind])
    assert pass_on(comm, foreign(kind, [comm.rank, 2, 3]), out=out) is out and out.tolist() == [
        previous,
        2,
        3,
    ]
    assert pass_on(comm, foreign(kind, [comm.rank, 2]), out=out).tolist() == [previous, 2]
    strided = np.zeros((3, 2), KINDS[kind])[:, 0]
    pass_on(comm, mixed(kind, [comm.rank, 8, 9]), out=strided)
    assert strided.tolist() == [previous, 8, 9]
    with refused(TypeError, "int64", repr(KINDS[kind])):
        pass_on(comm, foreign(kind, [1, 2, 3]), out=np.zeros(3, np.int64))
    assert comm.recv(previous).tolist() == [1, 2, 3]


@both
def test_structures_scalars_and_containers(comm, kind):
    _following, previous = neighbours(comm)
    dtype = np.dtype([("tag", "u1"), ("number", KINDS[kind]), ("more", KINDS[kind], (2,))])
    array = np.zeros(500, dtype)
    array["number"] = foreign(kind, [comm.rank] * 500)
    arrived = pass_on(comm, array)
    assert (
        arrived.dtype == dtype and arrived.tobytes() != b"" and arrived["number"].tolist() == [previous] * 500
    )
    out = np.zeros(500, dtype)
    assert (pass_on(comm, array, out=out)["number"] == previous).all()
    scalar = KINDS[kind].type(comm.rank)
    for sent in (scalar, (scalar, 1), {"a": foreign(kind, [comm.rank])}, [foreign(kind, range(10_000))]):
        found = pass_on(comm, sent)
        assert type(found) is type(sent)
    assert type(pass_on(comm, scalar)) is type(scalar) and pass_on(comm, scalar) == previous
    with refused(TypeError, "number"):
        comm.global_sum(array)


@both
@pytest.mark.parametrize("length", [3, 20_000])
@pytest.mark.slow
def test_collectives_move_them(comm, kind, length):
    mine = foreign(kind, numbers(comm.rank, length))
    assert comm.bcast(mine if comm.rank == 0 else None).tolist() == numbers(0, length)
    shared = comm.bcast(mine if comm.rank == 0 else None, copy=False)
    assert shared[1] == 1 and shared.sum() == sum(
        numbers(0, length)
    )  # read-only, and of no use to others if written
    expected = [numbers(rank, length) for rank in range(comm.size)]
    assert [array.tolist() for array in comm.allgather(mine)] == expected
    gathered = comm.gather(mine)
    assert gathered is None or [array.tolist() for array in gathered] == expected
    assert comm.scatter([mine] * comm.size if comm.rank == 0 else None).tolist() == expected[0]
    assert [array.tolist() for array in comm.alltoall([mine] * comm.size)] == expected


@both
@pytest.mark.parametrize("length", [1, 10, 30_000])
def test_reductions_are_those_of_numpys_own_numbers(comm, kind, length):
    mine = mixed(kind, numbers(comm.rank, length))
    table = np.array([numbers(rank, length) for rank in range(comm.size)], WIDE[kind])
    for found, expected in [
        (comm.global_sum(mine), table.sum(0)),
        (comm.global_min(mine), table.min(0)),
        (comm.global_max(mine), table.max(0)),
        (comm.allreduce(mine), table.sum(0)),
        (comm.allreduce(mine, op=spcomm.MAX, algorithm="tree"), table.max(0)),
        (comm.scan(mine), table[: comm.rank + 1].sum(0)),
        (comm.global_sum((mine, 1))[0], table.sum(0)),
    ]:
        assert found.dtype == WIDE[kind] and np.array_equal(found, expected)
    assert spcomm.foreign_count(mine) == spcomm.foreign_count(mixed(kind, numbers(comm.rank, length)))


def test_reductions_of_scalars(comm):
    total = sum(range(comm.size))
    assert (
        comm.global_sum(NetInt(comm.rank)) == total
        and comm.allreduce(NetInt(comm.rank), op=spcomm.MAX) == comm.size - 1
    )
    assert comm.global_sum(NetDouble(comm.rank + 0.5)) == total + comm.size / 2
    assert comm.global_max((NetInt(comm.rank), NetDouble(0.5))) == (comm.size - 1, 0.5)
    assert (
        comm.allreduce(NetDouble(comm.rank)) == total and comm.reduce(np.zeros(2, NET_DOUBLE)) is not None
    ) or comm.rank


def test_an_operator_of_the_program_gets_them_as_they_are(comm):
    @spcomm.op(commutative=True)
    def larger(left, right):
        assert left.dtype is NET_INT and right.dtype is NET_INT
        return np.where(left > right, left, right)

    found = comm.allreduce(mixed("int", [comm.rank, 5]), op=larger)
    assert found.tolist() == [comm.size - 1, max(5, 5)]
