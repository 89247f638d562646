# SPDX-License-Identifier: MIT
"""Derived datatypes."""

import numpy as np
from mpi4py import MPI

from course import program, say, say_all


def swap(comm, out, into):
    """A message to the node opposite, and one from there; messages of a node to itself, too."""
    opposite = comm.size - 1 - comm.rank
    comm.Sendrecv(out, opposite, recvbuf=into, source=opposite)


@program()
def column(comm):
    """A column of a matrix by a vector type."""
    matrix = np.arange(12, dtype="i").reshape(3, 4) + 100 * comm.rank
    kind = MPI.INT.Create_vector(3, 1, 4).Commit()
    incoming = np.zeros(3, "i")
    swap(comm, [matrix.reshape(-1)[2:], 1, kind], incoming)
    kind.Free()
    say_all(comm, incoming.tolist())


@program()
def columns_to_nodes(comm):
    """Scatter of columns: a vector, resized to begin at the next column."""
    rows = 3
    matrix = np.arange(rows * comm.size, dtype="i").reshape(rows, comm.size) if comm.rank == 0 else None
    vector = MPI.INT.Create_vector(rows, 1, comm.size)
    kind = vector.Create_resized(0, 4).Commit()
    mine = np.zeros(rows, "i")
    comm.Scatter([matrix, 1, kind] if comm.rank == 0 else None, mine)
    vector.Free()
    kind.Free()
    say_all(comm, mine.tolist())


@program()
def particles(comm):
    """A struct of an int, two doubles and a char."""
    layout = np.dtype([("id", "i4"), ("place", "f8", 2), ("kind", "S1")], align=True)
    offsets = [layout.fields[name][1] for name in layout.names]
    struct = MPI.Datatype.Create_struct([1, 2, 1], offsets, [MPI.INT, MPI.DOUBLE, MPI.CHAR])
    kind = struct.Create_resized(0, layout.itemsize).Commit()
    mine = np.zeros(3, layout)
    mine["id"], mine["place"], mine["kind"] = comm.rank, [[1, 2], [3, 4], [5, 6]], b"abc"[comm.rank % 3 :][:1]
    incoming = np.zeros(3, layout)
    swap(comm, [mine, 3, kind], [incoming, 3, kind])
    struct.Free()
    kind.Free()
    say_all(comm, (incoming["id"].tolist(), incoming["place"].sum(), incoming["kind"].tolist()))


@program()
def structured_arrays(comm):
    """The type that mpi4py makes of a structured dtype."""
    layout = np.dtype([("a", "i4"), ("b", "f8")], align=True)
    kind = MPI.Datatype.fromcode("i").Dup()
    kind.Free()
    kind = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT, MPI.DOUBLE]).Commit()
    table = np.array([(rank, rank / 2) for rank in range(4)], layout)
    table["a"] += comm.rank
    comm.Bcast([table, 4, kind], root=comm.size - 1)
    say_all(comm, table.tolist())
    kind.Free()


@program()
def block_of_a_matrix(comm):
    """A subarray goes from one place of a matrix to another place."""
    matrix = np.arange(30, dtype="f8").reshape(5, 6) + 100 * comm.rank
    target = np.zeros((4, 4))
    out = MPI.DOUBLE.Create_subarray([5, 6], [2, 3], [1, 2]).Commit()
    into = MPI.DOUBLE.Create_subarray([4, 4], [2, 3], [2, 1]).Commit()
    swap(comm, [matrix, 1, out], [target, 1, into])
    out.Free()
    into.Free()
    say_all(comm, target[2:].tolist())


@program()
def triangle(comm):
    """The upper triangle of a matrix, by an indexed type, arrives without gaps."""
    n = 4
    matrix = np.arange(n * n, dtype="i").reshape(n, n) * (comm.rank + 1)
    kind = MPI.INT.Create_indexed([n - row for row in range(n)], [row * (n + 1) for row in range(n)]).Commit()
    incoming = np.zeros(n * (n + 1) // 2, "i")
    swap(comm, [matrix, 1, kind], incoming)
    kind.Free()
    say_all(comm, incoming.tolist())


@program()
def scattered_blocks(comm):
    """Blocks of one length at places in bytes and in elements."""
    data, incoming = np.arange(20, dtype="i2") + comm.rank, np.zeros(20, "i2")
    out = MPI.SHORT.Create_indexed_block(2, [16, 1, 8]).Commit()
    into = MPI.SHORT.Create_hindexed([3, 3], [0, 20]).Commit()
    swap(comm, [data, 1, out], [incoming, 1, into])
    out.Free()
    into.Free()
    say_all(comm, incoming.tolist())


@program()
def packed(comm):
    """Different values in one message, by Pack and Unpack."""
    size = MPI.INT.Pack_size(2, comm) + MPI.DOUBLE.Pack_size(1, comm)
    buffer = bytearray(size)
    at = MPI.INT.Pack(np.array([comm.rank, 7], "i"), buffer, 0, comm)
    at = MPI.DOUBLE.Pack(np.array([comm.rank / 4]), buffer, at, comm)
    incoming = bytearray(size)
    opposite = comm.size - 1 - comm.rank
    comm.Sendrecv([buffer, at, MPI.PACKED], opposite, recvbuf=[incoming, MPI.PACKED], source=opposite)
    numbers, fraction = np.zeros(2, "i"), np.zeros(1)
    at = MPI.INT.Unpack(incoming, 0, numbers, comm)
    MPI.DOUBLE.Unpack(incoming, at, fraction, comm)
    say_all(comm, (numbers.tolist(), float(fraction[0])))


@program()
def external(comm):
    """external32 is big-endian everywhere."""
    buffer = bytearray(MPI.INT.Pack_external_size("external32", 2))
    MPI.INT.Pack_external("external32", np.array([1, 256 + comm.rank], "i"), buffer, 0)
    say_all(comm, buffer.hex())


@program()
def extents(comm):
    """Sizes and extents of types, and how they were made."""
    vector = MPI.DOUBLE.Create_vector(3, 2, 5)
    padded = vector.Create_resized(-8, 160)
    doubled = padded.Create_contiguous(2)
    for kind in (MPI.INT, MPI.CHAR, MPI.DOUBLE_INT, vector, padded, doubled):
        say(comm, kind.Get_size(), kind.Get_extent(), kind.Get_true_extent())
    combiner = {MPI.COMBINER_VECTOR: "vector", MPI.COMBINER_RESIZED: "resized", MPI.COMBINER_NAMED: "named"}
    for kind in (vector, padded, MPI.INT):
        say(comm, combiner[kind.combiner])
    integers, _, counts, _ = vector.Get_contents()
    say(comm, integers or counts, vector.Get_contents()[3][0] == MPI.DOUBLE)
    for kind in (doubled, padded, vector):
        kind.Free()


@program()
def nested(comm):
    """Types of types: every second 2 × 2 block of a matrix, and the number of elements that arrived."""
    matrix, incoming = np.arange(64, dtype="i").reshape(8, 8), np.zeros(24, "i")
    block = MPI.INT.Create_vector(2, 2, 8)
    row = block.Create_hvector(2, 1, 16)
    kind = row.Create_hvector(2, 1, 128).Commit()
    status = MPI.Status()
    opposite = comm.size - 1 - comm.rank
    comm.Sendrecv([matrix, 1, kind], opposite, recvbuf=incoming, source=opposite, status=status)
    say_all(comm, (incoming[:16].tolist(), status.Get_count(MPI.INT)))
    for made in (kind, row, block):
        made.Free()


@program()
def distributed_array(comm):
    """The part of a matrix that each node has in a block-cyclic distribution."""
    dims = MPI.Compute_dims(comm.size, 2)
    kinds = [MPI.DISTRIBUTE_CYCLIC, MPI.DISTRIBUTE_BLOCK]
    kind = MPI.INT.Create_darray(
        comm.size, comm.rank, [6, 8], kinds, [2, MPI.DISTRIBUTE_DFLT_DARG], dims, MPI.ORDER_C
    ).Commit()
    matrix = np.arange(48, dtype="i")
    mine = np.zeros(kind.Get_size() // 4, "i")
    request = comm.Irecv(mine, source=comm.rank)
    comm.Send([matrix, 1, kind], dest=comm.rank)
    request.Wait()
    kind.Free()
    say_all(comm, mine.tolist())
