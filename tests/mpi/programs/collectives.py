# SPDX-License-Identifier: MIT
"""All collectives against results that each node computes alone: numbers, in place, derived types, own operators."""

import numpy as np
from mpi4py import MPI
from values import expect, given, matrix, multiply, product

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def logical():
    """Only values that meet another one become 0 or 1: a node's own value stays what it is."""
    own, found = np.array([5, 0, rank + 2], "i"), np.zeros(3, "i")
    MPI.COMM_SELF.Allreduce(own, found, MPI.LOR)
    expect(found, own)
    comm.Scan(own, found, MPI.LAND)
    expect(found, own if rank == 0 else [1, 0, 1])
    comm.Exscan(own, found, MPI.LXOR)
    if rank:
        expect(found, [5, 0, 2] if rank == 1 else [rank % 2, 0, rank % 2])
    comm.Allreduce(MPI.IN_PLACE, own, MPI.LAND)
    expect(own, [5, 0, 2] if size == 1 else [1, 0, 1])


def moving(root):
    everything = np.concatenate([given(node) for node in range(size)])
    data = given(rank) if rank == root else np.zeros(3, "i")
    comm.Bcast(data, root)
    expect(data, given(root))
    all_data = np.zeros(3 * size, "i")
    comm.Gather(given(rank), all_data if rank == root else None, root)
    expect(all_data, everything if rank == root else 0 * everything)
    comm.Allgather(given(rank), all_data)
    expect(all_data, everything)
    mine = np.zeros(3, "i")
    comm.Scatter(everything if rank == root else None, mine, root)
    expect(mine, given(rank))
    in_place = np.zeros(3 * size, "i")
    in_place[3 * rank : 3 * rank + 3] = given(rank)
    comm.Allgather(MPI.IN_PLACE, in_place)
    expect(in_place, everything)
    counts = [node + 1 for node in range(size)]
    places = [sum(counts[:node]) for node in range(size)]
    uneven = np.zeros(sum(counts), "i")
    comm.Allgatherv(given(rank, rank + 1), [uneven, counts, places, MPI.INT])
    expect(uneven, np.concatenate([given(node, node + 1) for node in range(size)]))


def exchanging():
    rows = np.array([[100 * rank + peer] * 2 for peer in range(size)], "d")
    columns = np.array([[100 * peer + rank] * 2 for peer in range(size)], "d")
    got = np.zeros_like(rows)
    comm.Alltoall(rows, got)
    expect(got, columns)
    comm.Alltoall(MPI.IN_PLACE, rows)
    expect(rows, columns)


def combining(root):
    for dtype in "bhiqfdg":
        for count in (1, 3, 5000):
            mine, total = given(rank, count, dtype), np.zeros(count + 1, dtype)[1:]
            wanted = sum((given(node, count, dtype) for node in range(size)), np.zeros(count, dtype))
            comm.Allreduce(mine, total)
            expect(total, wanted)
            comm.Reduce(MPI.IN_PLACE if rank == root else mine, mine if rank == root else None, root=root)
            expect(mine, wanted if rank == root else given(rank, count, dtype))
            comm.Scan(given(rank, count, dtype), total)
            expect(total, sum(given(node, count, dtype) for node in range(rank + 1)).astype(dtype))
    parts = np.zeros(2, "d")
    comm.Reduce_scatter_block(np.arange(2.0 * size), parts)
    expect(parts, size * np.arange(2.0 * rank, 2.0 * rank + 2))


def own_operators(root):
    items = MPI.INT64_T.Create_contiguous(4).Commit()
    operator = MPI.Op.Create(multiply, commute=False)
    total = np.zeros((2, 2), "q")
    comm.Allreduce([matrix(rank), 1, items], [total, 1, items], operator)
    expect(total, product(range(size)))
    comm.Scan([matrix(rank), 1, items], [total, 1, items], operator)
    expect(total, product(range(rank + 1)))
    mine = matrix(rank)
    request = comm.Allreduce_init([mine, 1, items], [total, 1, items], operator)
    for _ in range(2):
        total[:] = 0
        request.Start()
        request.Wait()
        expect(total, product(range(size)))
    request.Free()
    operator.Free()
    items.Free()


def barriers():
    requests = [comm.Ibarrier() for _ in range(20)]
    comm.Barrier()
    MPI.Request.Waitall(requests)


for root in range(size):
    moving(root)
    combining(root)
    own_operators(root)
logical()
exchanging()
barriers()
try:
    comm.Allreduce(np.zeros(1), np.zeros(1), MPI.BAND)
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_OP
    assert "MPI_BAND does not combine MPI_DOUBLE" in str(error), error
else:
    raise AssertionError("bits of floating-point numbers were combined")
