# SPDX-License-Identifier: MIT
"""Partitioned messages: around a ring, filled by threads, divided otherwise at either end, beside other messages."""

import threading

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
after, before = (rank + 1) % size, (rank - 1) % size


def refused(error_class, call, *arguments):
    try:
        call(*arguments)
    except MPI.Exception as error:
        assert error.Get_error_class() == error_class, error
        return True
    return False


def ring():
    """Four threads fill a partition each; the receiver has two, and an ordinary message has the same tag."""
    filled, taken = bytearray(32), bytearray(32)
    give = world.Psend_init([filled, 8, MPI.BYTE], 4, after, 3)
    take = world.Precv_init([taken, 16, MPI.BYTE], 2, before, 3)

    def fill(part, number):
        filled[8 * part : 8 * part + 8] = bytes([number + part]) * 8
        give.Pready(part)

    for number in (10, 20, 30):
        MPI.Prequest.Startall([give, take])
        threads = [threading.Thread(target=fill, args=(part, number)) for part in range(4)]
        for thread in threads:
            thread.start()
        world.isend(number, after, 3).wait()
        assert world.recv(source=before, tag=3) == number
        while not (take.Parrived(0) and take.Parrived(1)):
            pass
        status = MPI.Status()
        take.Wait(status)
        assert (status.source, status.tag, status.Get_count(MPI.BYTE)) == (before, 3, 32)
        give.Wait()
        for thread in threads:
            thread.join()
        assert taken == b"".join(bytes([number + part]) * 8 for part in range(4))
        assert take.Parrived(0)  # of a request that is not started
    give.Free()
    take.Free()


def order():
    """The first request of a tag belongs to the first one of the other node, whichever is started first."""
    parts = [bytearray(b"a"), bytearray(b"b"), bytearray(1), bytearray(1)]
    give = [world.Psend_init(part, 1, after, 0) for part in parts[:2]]
    take = [world.Precv_init(part, 1, before, 0) for part in parts[2:]]
    for request in reversed(give):
        request.Start()
        request.Pready_list([0])
    for request in take:
        request.Start()
    MPI.Request.Waitall(give + take)
    assert parts[2:] == parts[:2]
    for request in give + take:
        request.Free()


def refusals():
    data = bytearray(2)
    give = world.Psend_init(data, 2, after, 1)
    take = world.Precv_init(data, 2, before, 1)
    assert refused(MPI.ERR_REQUEST, give.Pready, 0)  # it is not started
    assert refused(MPI.ERR_REQUEST, take.Pready, 0)
    assert refused(MPI.ERR_REQUEST, give.Parrived, 0)
    assert refused(MPI.ERR_TAG, world.Psend_init, data, 1, after, 2**31 - 1)
    assert refused(MPI.ERR_RANK, world.Precv_init, data, 1, MPI.ANY_SOURCE, 0)
    MPI.Prequest.Startall([give, take])
    give.Pready(1)
    assert refused(MPI.ERR_ARG, give.Pready, 1)
    assert refused(MPI.ERR_ARG, give.Pready, 2)
    assert refused(MPI.ERR_ARG, take.Parrived, -1)
    assert not give.Test()
    give.Pready_range(0, 0)
    MPI.Request.Waitall([give, take])
    give.Free()
    take.Free()
    nobody = world.Psend_init(data, 1, MPI.PROC_NULL, 0)
    nobody.Start()
    nobody.Pready(0)
    nobody.Wait()
    nobody.Free()


ring()
order()
refusals()
