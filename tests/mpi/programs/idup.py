# SPDX-License-Identifier: MIT
"""Duplicates that a request completes: no call waits, and they end in any order."""

import sys

import numpy as np
from mpi4py import MPI
from values import expect

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def use(made, like=comm):
    """Messages and collectives of a communicator, which nothing else gets."""
    assert MPI.Comm.Compare(made, like) == MPI.CONGRUENT
    right, left = (made.rank + 1) % made.size, (made.rank - 1) % made.size
    assert made.sendrecv(made.rank, dest=right, source=left) == left
    assert made.allreduce(made.rank) == sum(range(made.size))


def skew_numbers():
    """Each node has other numbers in use: those of communicators of its own, and of pairs."""
    mine = [MPI.COMM_SELF.Dup() for _ in range(3 * rank)]
    pair = comm.Split(rank // 2, rank)
    mine += [pair.Dup() for _ in range(1 + rank // 2)]
    for made in mine[::2]:
        made.Free()
    return [*mine[1::2], pair]


def a_message_between_the_calls():
    """A node goes on to a receive, for a message that is sent before the other node's call."""
    if rank > 0:
        comm.send(None, dest=rank - 1, tag=5)
    made, request = comm.Idup()
    if rank < size - 1:
        comm.recv(source=rank + 1, tag=5)
    request.Wait()
    use(made)
    made.Free()


def a_wait_for_something_else():
    """A node that waits in a receive lets the others' duplicate end."""
    made, request = comm.Idup()
    if rank == 0:
        for node in range(1, size):
            comm.recv(source=node, tag=6)
        assert request.Test()
    else:
        request.Wait()
        comm.send(None, dest=0, tag=6)
    request.Wait()
    use(made)
    made.Free()


def many_at_once():
    """Completed last first; each has messages of its own."""
    made, requests = zip(*[comm.Idup() for _ in range(12)], strict=True)
    for request in reversed(requests):
        request.Wait()
    sent = [one.isend(number, dest=(rank + 1) % size) for number, one in enumerate(made)]
    for number in reversed(range(12)):
        assert made[number].recv(source=(rank - 1) % size) == number
    MPI.Request.Waitall(sent)
    for one in made:
        use(one)
        one.Free()


def in_crossed_orders():
    """Duplicates of several communicators, begun in other orders on other nodes, beside calls that wait."""
    kept = skew_numbers()
    several = [comm.Split(0, rank) for _ in range(4)]
    for turn in range(5):
        order = [(index + rank + turn) % len(several) for index in range(len(several))]
        begun = {index: several[index].Idup() for index in order}
        blocking = comm.Dup()
        again = {index: several[index].Idup() for index in order[::-1]}
        half = comm.Split(rank % 2, rank)
        MPI.Request.Waitall([begun[index][1] for index in order])
        while not MPI.Request.Testall([again[index][1] for index in order[::-1]]):
            pass
        for index in range(len(several)):
            use(begun[index][0])
            use(again[index][0])
        use(blocking)
        for one in [blocking, half] + [pair[0] for pair in (*begun.values(), *again.values())]:
            one.Free()
    for one in several + kept:
        one.Free()


def of_parts_that_overlap():
    """The first member of one is not that of the other."""
    kept = skew_numbers()
    backwards = comm.Split(0, -rank)
    inner = comm.Split(0 if rank else MPI.UNDEFINED, -rank)
    for _ in range(5):
        calls = [comm, backwards] + ([inner] if rank else [])
        made = {one.handle: one.Idup() for one in (calls[::-1] if rank % 2 else calls)}
        MPI.Request.Waitall([made[one.handle][1] for one in calls])
        for one in calls:
            use(made[one.handle][0], one)
            made[one.handle][0].Free()
    for one in [backwards, *kept] + ([inner] if rank else []):
        one.Free()


def beside_other_requests():
    """In one list with messages and other collectives."""
    made, request = comm.Idup()
    found, total = np.zeros(1, "i"), np.zeros(1, "i")
    mine = np.array([rank], "i")
    requests = [
        comm.Irecv(found, source=(rank - 1) % size, tag=7),
        request,
        comm.Iallreduce(mine, total),
        comm.Isend(mine, dest=(rank + 1) % size, tag=7),
    ]
    ended = {MPI.Request.Waitany(requests) for _ in range(4)}
    assert ended == {0, 1, 2, 3} and all(one == MPI.REQUEST_NULL for one in requests)
    expect(found, [(rank - 1) % size])
    expect(total, [sum(range(size))])
    use(made)
    again, request = made.Idup()
    while not request.Get_status():
        pass
    use(again)
    request.Wait()
    use(again)
    again.Free()
    made.Free()


def extras_of_the_call():
    """Attributes are those of the time of the call."""
    parent = comm.Dup()
    deleted = []

    key = MPI.Comm.Create_keyval(
        lambda _comm, _key, value: value + 1, lambda _comm, _key, value: deleted.append(value)
    )
    parent.Set_attr(key, 10)
    made, request = parent.Idup(MPI.Info.Create({"mpi_assert_exact_length": "true"}))
    parent.Set_attr(key, 20)
    request.Wait()
    assert made.Get_attr(key) == 11 and made.Get_info()["mpi_assert_exact_length"] == "true"
    made.Free()
    assert deleted == [10, 11]
    parent.Free()


def refuses(made):
    try:
        made.Get_rank()
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_COMM, error
        return error.Get_error_string()
    raise AssertionError("the communicator is not there")


def not_before_completion():
    """The communicator is refused until then, and the parent may be freed before."""
    parent = comm.Dup()
    made, request = parent.Idup()
    assert "complete the request of" in refuses(made)
    parent.Free()
    made.Set_errhandler(MPI.ERRORS_RETURN)
    request.Wait()
    use(made)
    made.Free()


def of_one_node():
    made, request = MPI.COMM_SELF.Idup()
    request.Wait()
    use(made, MPI.COMM_SELF)
    made.Free()


def of_two_groups():
    """Collectives between the groups, and those that need the group's own communicator."""
    if size < 2:
        return
    half = rank * 2 // size
    local = comm.Split(half, rank)
    inter = local.Create_intercomm(0, comm, 0 if half else (size + 1) // 2)
    if rank > 0:
        comm.send(None, dest=rank - 1, tag=8)
    made, request = inter.Idup()
    if rank < size - 1:
        comm.recv(source=rank + 1, tag=8)
    request.Wait()
    assert MPI.Comm.Compare(made, inter) == MPI.CONGRUENT and made.Is_inter()
    inter.Free()
    assert made.allreduce(rank) == sum(node for node in range(size) if node * 2 // size != half)
    merged = made.Merge(half == 1)
    use(merged)
    for one in (merged, made, local):
        one.Free()


def many_in_turn():
    """Their numbers and their memory are used again."""
    for _ in range(100):
        made, request = comm.Idup()
        request.Wait()
        made.Free()


def left_alone():
    """One node's duplicate waits for another node, which waits for its message."""
    if rank == 0:
        comm.Idup()[1].Wait()
        comm.send(None, dest=size - 1)
    elif rank == size - 1:
        comm.recv(source=0)
        comm.Idup()[1].Wait()
    else:
        comm.Idup()[1].Wait()


def refused_copy():
    """A copy that fails leaves the other nodes alone."""

    def copy(_comm, _key, value):
        if value:
            raise ValueError(value)
        return value

    parent = comm.Dup()
    key = MPI.Comm.Create_keyval(copy)
    parent.Set_attr(key, rank == size - 1)
    made, request = parent.Idup()
    try:
        request.Wait()
    except MPI.Exception:
        assert rank == size - 1
        refuses(made)
    else:
        assert rank < size - 1 and made.Get_attr(key) is False
        made.Free()
    parent.Free()


def without_room():
    """All nodes hear that a box has no room, and go on."""
    for _ in range(2):
        made = []
        try:
            while len(made) < 1000:
                one, request = comm.Idup()
                request.Wait()
                made.append(one)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_NO_MEM and "--arena" in str(error), error
        assert 0 < len(made) < 1000
        for one in made:
            one.Free()
        comm.Barrier()


def never_completed():
    comm.Idup()
    comm.Barrier()


ALL = (
    a_message_between_the_calls,
    a_wait_for_something_else,
    many_at_once,
    in_crossed_orders,
    of_parts_that_overlap,
    beside_other_requests,
    extras_of_the_call,
    not_before_completion,
    of_one_node,
    of_two_groups,
    many_in_turn,
)
for name in sys.argv[1:] or [case.__name__ for case in ALL]:
    globals()[name]()
