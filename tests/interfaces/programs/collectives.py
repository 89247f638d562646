# SPDX-License-Identifier: MIT
"""All collectives in Python: the other half of collectives.c, line for line.

Each node prints the CRC-32 of what it gets, so that what a run prints is the same whichever of its nodes are in C.
"""

import os
import sys
import zlib

import numpy as np

import spcomm

comm = spcomm.startup()
rank, size = comm.rank, comm.size
number = 0
stride = int(sys.argv[1]) if len(sys.argv) > 1 else 1
lines = []


def tell(what, data):
    """`data`: an array, an object as C sends it, or None."""
    if isinstance(data, (bool, int)):
        data = np.int64(data)
    elif isinstance(data, str):
        data = data.encode()
    elif isinstance(data, spcomm.SimTime):
        data = np.asarray(data)
    elif isinstance(data, float):
        data = np.float64(data)
    data = b"" if data is None else data if isinstance(data, bytes) else data.tobytes()
    lines.append(f"{number} {what} {rank} {zlib.crc32(data):08x}")


# ---- values


def hashes(count):
    mixed = (np.arange(1, count + 1, dtype=np.uint64) * 2654435761 + rank * 40503 + number * 97) % 2**32
    mixed ^= mixed >> 15
    mixed = mixed * 2246822519 % 2**32
    return (mixed ^ mixed >> 13).astype(np.uint32)


def put(dtype, mixed):
    if dtype == np.bool_:
        return mixed % 2 == 1
    if np.dtype(dtype).kind != "f":
        return mixed.astype(np.int32).astype(np.int64).astype(dtype)
    real = mixed.astype(np.int32) / 7.0
    return np.select([mixed % 50 == 0, mixed % 50 == 1], [np.nan, -0.0], real).astype(dtype)


def values(dtype, count):
    mixed = hashes(count)
    made = np.zeros(count, dtype)
    if dtype == spcomm.SimTime.dtype:
        made["time"] = mixed % 5 * 0.5
        made["priorities"] = np.stack(
            [mixed.astype(np.uint32) // 256 % 3, 0 * mixed, 0 * mixed, 0 * mixed + 1], 1
        )
        made["priorities"][:, 2] = -rank
    elif made.dtype.names:
        made["value"] = put(made.dtype["value"], np.where(mixed % 50 < 2, mixed, mixed % 7))
        made["index"] = np.arange(count) * 3 - rank
    elif made.dtype.kind == "c":
        made.real = mixed.astype(np.uint16).astype(np.int16) / 8
        made.imag = (mixed >> 16).astype(np.uint16).astype(np.int16) / 8
    else:
        made[:] = put(dtype, mixed)
    return made


# ---- reductions of arrays


def reduce_all(dtype, op):
    global number
    if number % stride == 0:
        reduce_array(dtype, op)
    number += 1


def reduce_array(dtype, op):
    rows = [3, 96, 3000][number % 3]
    shape = (rows,) if number // 3 % 2 == 0 else (rows, 3)
    given = values(dtype, int(np.prod(shape))).reshape(shape)
    tell("allreduce", comm.allreduce(given, op))
    tell("reduce", comm.reduce(given, op, root=size - 1))
    tell("scan", comm.scan(given, op))
    tell("exscan", comm.exscan(given, op))
    counts = [0] * size
    counts[size - 1] = rows - 1
    counts[0] += 1
    tell("reduce_scatter", comm.reduce_scatter(given, op, counts=counts))
    tell("divided", comm.reduce_scatter(given, op))
    tell("again", comm.allreduce(given, op))


OPS = [spcomm.SUM, spcomm.MIN, spcomm.MAX, spcomm.PROD, spcomm.LAND, spcomm.LOR, spcomm.LXOR, spcomm.BAND,
       spcomm.BOR, spcomm.BXOR]  # fmt: skip


def reduce_types():
    for width in 1, 2, 4, 8:
        for op in OPS:
            reduce_all(f"i{width}", op)
            reduce_all(f"u{width}", op)
    for op in OPS[:7]:
        reduce_all("f4", op)
        reduce_all("f8", op)
    for op in OPS[1:]:
        if op is not spcomm.PROD:
            reduce_all(np.bool_, op)
    for dtype in "c8", "c16":
        reduce_all(dtype, spcomm.SUM)
        reduce_all(dtype, spcomm.PROD)
    for op in OPS[:3]:
        reduce_all(spcomm.SimTime.dtype, op)
    for value in "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8":
        pair = np.dtype([("value", value), ("index", "i8")], align=True)
        reduce_all(pair, spcomm.MINLOC)
        reduce_all(pair, spcomm.MAXLOC)


def reduce_numbers():
    global number
    for op in OPS[:3]:
        tell("int", comm.allreduce(rank - 7, op))
        tell("float", comm.reduce(rank / 7.0, op, root=0))
        tell("time", comm.allreduce(spcomm.SimTime(rank // 2 * 0.5, -rank, 2, 3, 4), op))
        number += 1


# ---- moving data

TEXT = "".join(chr(ord("a") + i % 23) for i in range(70000))
MATRIX = ((np.arange(15000) + rank) / np.float32(7)).astype(np.float32)


def gift(to):
    short = number % 2 == 0
    match (rank * 3 + to + number) % 7:
        case 0:
            return rank << 40 | to
        case 1:
            return rank / 7.0
        case 2:
            return TEXT[-5:] if short else TEXT
        case 3:
            return TEXT[: 41 if short else 5000].encode()
        case 4:
            return spcomm.SimTime(0.25, rank, to, -1, 9)
        case 5:
            return MATRIX[: 15 if short else 15000].reshape(-1, 5)
    return None


def move_data():
    global number
    root = number % size
    gifts = [gift(node) for node in range(size)]
    tell("bcast", comm.bcast(gift(0), root))
    tell("scatter", comm.scatter(gifts if rank == root else None, root))
    for item in comm.gather(gift(0), root) or []:
        tell("gather", item)
    for item in comm.allgather(gift(0)):
        tell("allgather", item)
    for item in comm.alltoall(gifts):
        tell("alltoall", item)
    tell("sendrecv", comm.sendrecv(gift(0), (rank + 1) % size, (rank - 1) % size, 3))
    number += 1


# ---- handlers, places


def handle():
    told = 0

    @comm.handler(11)
    def count(message):
        nonlocal told
        told += message.data
        comm.send(rank, message.source, 12)

    comm.send(rank + 1, spcomm.ALL, 11)
    answers = sum(comm.recv(node, 12) for node in range(size))
    while told < size * (size + 1) // 2:
        comm.poll()
    comm.barrier()
    tell("told", told)
    tell("answers", answers)


def place():
    for member, layout in zip(comm.members, comm.layout, strict=True):
        tell("layout", np.array([layout.box, layout.local_rank, layout.local_zero, member], np.int32))


reduce_types()
reduce_numbers()
for _ in range(14):
    move_data()
handle()
place()
os.write(1, "".join(line + "\n" for line in lines).encode())
