# SPDX-License-Identifier: MIT
"""Collective operations, as a course uses them."""

import numpy as np
from mpi4py import MPI

from course import number, program, say, say_all


def share(total, comm):
    """The first element and the number of elements of this node's part."""
    count, more = divmod(total, comm.size)
    return comm.rank * count + min(comm.rank, more), count + (comm.rank < more)


def shares(total, comm):
    """The numbers of elements of all nodes."""
    return [total // comm.size + (rank < total % comm.size) for rank in range(comm.size)]


@program()
def pi_by_sum(comm):
    """Every node takes each size-th rectangle."""
    steps = comm.bcast(10_000 if comm.rank == 0 else None)
    x = (np.arange(comm.rank, steps, comm.size) + 0.5) / steps
    say(comm, number(comm.reduce(float((4 / (1 + x * x)).sum()) / steps) or 0))


@program()
def trapezoids(comm):
    """The integral of x² from 0 to 3, with Reduce into an array."""
    first, count = share(1024, comm)
    x = np.linspace(0, 3, 1025)[first : first + count + 1]
    area, total = np.array([((x[1:] ** 2 + x[:-1] ** 2) / 2 * (3 / 1024)).sum()]), np.zeros(1)
    comm.Reduce(area, total, op=MPI.SUM, root=0)
    say(comm, number(total[0]))


@program()
def monte_carlo(comm):
    """Points in a circle; each node has a generator of its own."""
    state, hits = comm.rank + 1, 0
    for _ in range(2000):
        point = []
        for _ in range(2):
            state = (1103515245 * state + 12345) % 2**31
            point.append(state / 2**31)
        hits += point[0] ** 2 + point[1] ** 2 < 1
    say_all(comm, comm.allreduce(hits))


@program()
def broadcast(comm):
    """A dictionary and an array, from different roots."""
    settings = comm.bcast({"n": 10, "name": "x"} if comm.rank == 0 else None, root=0)
    data = np.arange(10.0) if comm.rank == comm.size - 1 else np.empty(10)
    comm.Bcast(data, root=comm.size - 1)
    say_all(comm, (settings, number(data.sum())))


@program()
def scatter_gather(comm):
    """Objects go out one to a node, and come back."""
    word = comm.scatter([f"word{rank}" for rank in range(comm.size)] if comm.rank == 0 else None)
    say(comm, comm.gather(word.upper() + str(comm.rank)))


@program()
def uneven_parts(comm):
    """Scatterv and Gatherv of a vector that the number of nodes does not divide."""
    counts = shares(17, comm)
    vector = np.arange(17.0) if comm.rank == 0 else None
    mine = np.empty(counts[comm.rank])
    comm.Scatterv([vector, counts], mine, root=0)
    mine *= mine
    result = np.zeros(17) if comm.rank == 0 else None
    comm.Gatherv(mine, [result, counts], root=0)
    say(comm, result)


@program()
def matrix_vector_rows(comm):
    """Rows of the matrix, parts of the vector; Allgather makes the vector whole."""
    rows = 3
    n = rows * comm.size
    matrix = np.fromfunction(lambda i, j: (i + comm.rank * rows + 1) * (j + 2) % 7, (rows, n))
    x = np.arange(comm.rank * rows, (comm.rank + 1) * rows, dtype="d")
    for _ in range(3):
        whole = np.empty(n)
        comm.Allgather(x, whole)
        x = matrix @ whole % 11
    say_all(comm, x.tolist())


@program()
def matrix_vector_columns(comm):
    """Columns of the matrix; Reduce_scatter adds and distributes."""
    n = 2 * comm.size
    columns = np.fromfunction(lambda i, j: (i * 3 + (j + 2 * comm.rank) * 5) % 13, (n, 2))
    mine = np.zeros(2)
    comm.Reduce_scatter(columns @ np.array([1.0, 2.0]), mine, [2] * comm.size)
    block = np.zeros(2)
    comm.Reduce_scatter_block(columns @ np.array([1.0, 2.0]), block)
    say_all(comm, (mine.tolist(), block.tolist()))


@program()
def dot_product(comm):
    """Local products, and one Allreduce."""
    first, count = share(100, comm)
    x = np.arange(first, first + count, dtype="d")
    result = np.empty(1)
    comm.Allreduce(np.array([x @ (x + 1)]), result)
    say_all(comm, number(result[0]))


@program()
def statistics(comm):
    """Mean, deviation, minimum and maximum."""
    first, count = share(50, comm)
    x = np.sin(np.arange(first, first + count))
    n, mean = 50, comm.allreduce(float(x.sum())) / 50
    deviation = (comm.allreduce(float(((x - mean) ** 2).sum())) / (n - 1)) ** 0.5
    least = comm.allreduce(min(x, default=9.0), op=MPI.MIN)
    most = comm.allreduce(max(x, default=-9.0), op=MPI.MAX)
    say(comm, *map(number, (mean, deviation, least, most)))


@program()
def transpose(comm):
    """Alltoall of the blocks of a matrix."""
    blocks = np.array([[10 * comm.rank + column] * 2 for column in range(comm.size)], "i")
    result = np.zeros_like(blocks)
    comm.Alltoall(blocks, result)
    say_all(comm, result[:, 0].tolist())


@program()
def to_owners(comm):
    """Numbers go to the node that owns them; Alltoall tells how many, Alltoallv brings them."""
    numbers = np.array(sorted(range(comm.rank, 30, 4), key=lambda x: x % comm.size), "i")
    counts = np.bincount(numbers % comm.size, minlength=comm.size).astype("i")
    from_each = np.zeros(comm.size, "i")
    comm.Alltoall(counts, from_each)
    mine = np.zeros(from_each.sum(), "i")
    comm.Alltoallv([numbers, counts], [mine, from_each])
    say_all(comm, sorted(mine.tolist()))


@program()
def transpose_by_types(comm):
    """Alltoallw: columns go out, rows come in."""
    n = comm.size
    rows = np.arange(n, dtype="i").reshape(1, n) + 100 * comm.rank
    mine, column = np.vstack([rows, -rows]), np.zeros((n, 2), "i")
    out = MPI.INT.Create_vector(2, 1, n).Commit()
    into = MPI.INT.Create_contiguous(2).Commit()
    comm.Alltoallw(
        [mine, [1] * n, [4 * rank for rank in range(n)], [out] * n],
        [column, [1] * n, [8 * rank for rank in range(n)], [into] * n],
    )
    out.Free()
    into.Free()
    say_all(comm, column.tolist())


@program()
def prefix_sums(comm):
    """Scan and Exscan, of numbers and of arrays."""
    scanned = np.zeros(2, "i8")
    comm.Scan(np.array([comm.rank + 1, 2], "i8"), scanned)
    before = np.full(1, -5, "i8")
    comm.Exscan(np.array([10], "i8"), before)
    say_all(comm, (scanned.tolist(), int(before[0]) if comm.rank else 0, comm.exscan(comm.rank) or 0))


@program()
def where_is_the_least(comm):
    """MINLOC and MAXLOC, of objects and of pairs."""
    value = (comm.rank * 5 + 3) % 8
    pair = np.array([(value, comm.rank)], np.dtype([("value", "d"), ("rank", "i")], align=True))
    result = np.zeros_like(pair)
    comm.Allreduce([pair, MPI.DOUBLE_INT], [result, MPI.DOUBLE_INT], op=MPI.MAXLOC)
    found = result[0].tolist()
    say_all(comm, (comm.allreduce((value, comm.rank), op=MPI.MINLOC), found))


@program()
def own_operator(comm):
    """Products of matrices depend on their order."""

    def multiply(left, right, datatype):
        x, y = (np.frombuffer(side, "i8").reshape(2, 2) for side in (left, right))
        y[:] = x @ y % 1009

    operator = MPI.Op.Create(multiply, commute=False)
    mine, product = np.array([[1, comm.rank + 1], [comm.rank % 2, 1]], "i8"), np.zeros((2, 2), "i8")
    matrix = MPI.INT64_T.Create_contiguous(4).Commit()
    comm.Allreduce([mine, 1, matrix], [product, 1, matrix], op=operator)
    prefix = np.zeros((2, 2), "i8")
    comm.Scan([mine, 1, matrix], [prefix, 1, matrix], op=operator)
    operator.Free()
    matrix.Free()
    say_all(comm, (product.tolist(), prefix.tolist()))


@program()
def own_operator_of_objects(comm):
    """A Python function that joins dictionaries."""
    merged = comm.reduce(
        {comm.rank % 3: [comm.rank]}, op=lambda a, b: {k: a.get(k, []) + b.get(k, []) for k in {*a, *b}}
    )
    say(comm, sorted(merged.items()) if merged else None)


@program()
def logic_and_bits(comm):
    """All operators of MPI on whole numbers."""
    bits = np.array([comm.rank + 1, 12 ^ comm.rank, 0], "i")
    results = []
    for op in (MPI.LAND, MPI.LOR, MPI.LXOR, MPI.BAND, MPI.BOR, MPI.BXOR, MPI.PROD, MPI.MIN, MPI.MAX):
        result = np.zeros(3, "i")
        comm.Reduce(bits, result, op=op, root=comm.size - 1)
        results.append(result.tolist())
    say(
        comm,
        comm.sendrecv(results, dest=comm.size - 1 - comm.rank, source=comm.size - 1 - comm.rank)
        if comm.rank in (0, comm.size - 1)
        else None,
    )


@program()
def overlap(comm):
    """Iallreduce, and something to compute meanwhile."""
    total = np.zeros(3)
    request = comm.Iallreduce(np.arange(3.0) * (comm.rank + 1), total)
    computed = sum(range(1000))
    request.Wait()
    say_all(comm, (total.tolist(), computed))


@program()
def pipeline_of_collectives(comm):
    """Several are open at once, and complete in any order."""
    data = np.arange(4, dtype="i") if comm.rank == 0 else np.zeros(4, "i")
    gathered, transposed = np.zeros(comm.size, "i"), np.zeros(comm.size, "i")
    requests = [
        comm.Ibcast(data, root=0),
        comm.Ibarrier(),
        comm.Iallgather(np.array([comm.rank], "i"), gathered),
        comm.Ialltoall(np.arange(comm.size, dtype="i") * (comm.rank + 1), transposed),
    ]
    MPI.Request.Waitall(requests[::-1])
    say_all(comm, (data.tolist(), gathered.tolist(), transposed.tolist()))


@program()
def in_place(comm):
    """IN_PLACE, in the collectives that courses use it with."""
    data = np.array([comm.rank + 1.0])
    comm.Allreduce(MPI.IN_PLACE, data)
    table = np.full(comm.size, -1, "i")
    table[comm.rank] = comm.rank * 2
    comm.Allgather(MPI.IN_PLACE, table)
    root = np.array([comm.rank], "i8")
    comm.Reduce(MPI.IN_PLACE if comm.rank == 0 else root, root if comm.rank == 0 else None, root=0)
    say_all(comm, (number(data[0]), table.tolist(), int(root[0])))


@program()
def ragged_rows(comm):
    """Allgatherv, with gaps between the parts."""
    counts = [rank + 1 for rank in range(comm.size)]
    places = [rank * (comm.size + 1) for rank in range(comm.size)]
    table = np.zeros((comm.size, comm.size + 1), "i2")
    comm.Allgatherv(np.full(comm.rank + 1, comm.rank + 1, "i2"), [table, counts, places, MPI.SHORT])
    say(comm, table.tolist())
    say_all(comm, int(table.sum()))


@program()
def persistent_reduction(comm):
    """A collective request that is started again and again."""
    value, total = np.array([comm.rank + 1], "i8"), np.zeros(1, "i8")
    request = comm.Allreduce_init(value, total)
    seen = []
    for _ in range(4):
        request.Start()
        request.Wait()
        seen.append(int(total[0]))
        value += 1
    request.Free()
    say_all(comm, seen)


@program()
def tree_broadcast(comm):
    """A broadcast by hand, along a binomial tree."""
    value, mask = ("news" if comm.rank == 0 else None), 1
    while mask < comm.size:
        if comm.rank < mask and comm.rank + mask < comm.size:
            comm.send(value, dest=comm.rank + mask)
        elif mask <= comm.rank < 2 * mask:
            value = comm.recv(source=comm.rank - mask)
        mask *= 2
    say_all(comm, value)


@program()
def tree_sum(comm):
    """A sum by hand: each step halves the number of nodes."""
    total, step = comm.rank + 1, 1
    while step < comm.size:
        if comm.rank % (2 * step) == 0:
            if comm.rank + step < comm.size:
                total += comm.recv(source=comm.rank + step)
        elif comm.rank % step == 0:
            comm.send(total, dest=comm.rank - step)
            break
        step *= 2
    say(comm, total)


@program()
def maximum_of_arrays(comm):
    """Elementwise, of every kind of number."""
    for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"):
        data = np.array([comm.rank, 5, (comm.rank * 7) % 5], kind)
        most, total = np.zeros_like(data), np.zeros_like(data)
        comm.Allreduce(data, most, op=MPI.MAX)
        comm.Allreduce(data, total)
        say(comm, kind, most.tolist(), total.tolist())
    total = np.zeros(2, "c16")
    comm.Allreduce(np.array([1 + comm.rank * 1j, 2j]), total)
    say(comm, total)
