# SPDX-License-Identifier: MIT
"""Random views and writes of a file, by every kind of pointer, against an array of bytes that each node keeps itself.

In every round the nodes' views divide the file among them, so that no two write the same byte.
"""

import os
import random
import sys
import tempfile

import numpy as np
from mpi4py import MPI

ROUNDS = 25
FILE_BYTES = 4096

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
own_folder = tempfile.TemporaryDirectory() if rank == 0 else None
folder = comm.bcast(own_folder.name if rank == 0 else None)
draw = random.Random(sys.argv[1])  # all nodes draw the same numbers


def divided():
    """A view for each node, and where its bytes are in the file."""
    disp, block = draw.randrange(64), draw.randrange(1, 6)
    etype, width = draw.choice([(MPI.BYTE, 1), (MPI.INT16_T, 2), (MPI.INT32_T, 4)])
    kind = draw.choice(["vector", "subarray", "indexed"])
    row = width * block * size  # bytes of one turn of all nodes
    if kind == "vector":
        blocks = [(rank * block, block)]
        two_rows = etype.Create_vector(2, block, size * block)
        filetype = two_rows.Create_hindexed([1], [rank * block * width]).Create_resized(0, 2 * row)
    elif kind == "subarray":
        blocks = [(rank * block, block)]
        filetype = etype.Create_subarray([1, size * block], [1, block], [0, rank * block])
    else:
        order = list(range(size * block))
        draw.shuffle(order)
        mine = sorted(order[rank * block : (rank + 1) * block])
        blocks = [(at, 1) for at in mine]
        filetype = etype.Create_indexed([1] * block, mine).Create_resized(0, row)
    places = [
        disp + turn * row + at * width + byte
        for turn in range(FILE_BYTES // row)
        for first, length in blocks
        for at in range(first, first + length)
        for byte in range(width)
    ]
    return disp, etype, width, filetype.Commit(), np.array(places)


def round_of(file, known):
    """One view, one write, and what is read back through it."""
    disp, etype, width, filetype, places = divided()
    file.Set_view(disp, etype, filetype)
    start, count = draw.randrange(20), draw.randrange(40)
    way = draw.choice(["at", "at_all", "pointer", "all", "split", "begun"])
    every = [
        np.random.default_rng([node, draw.randrange(1 << 30)]).bytes(width * count) for node in range(size)
    ]
    data, room = np.frombuffer(every[rank], "u1"), bytearray(width * count)
    if way == "at":
        file.Write_at(start, [data, count, etype])
    elif way == "at_all":
        file.Write_at_all(start, [data, count, etype])
    elif way == "begun":
        file.Iwrite_at(start, [data, count, etype]).Wait()
    else:
        file.Seek(start)
        if way == "pointer":
            file.Write([data, count, etype])
        elif way == "all":
            file.Write_all([data, count, etype])
        else:
            file.Write_all_begin([data, count, etype])
            file.Write_all_end([data, count, etype])
        assert file.Get_position() == start + count
    touched = places[start * width : (start + count) * width]
    for where, bytes_there in comm.allgather((touched, every[rank])):
        known[where] = np.frombuffer(bytes_there, "u1")
    file.Sync()
    comm.Barrier()
    file.Sync()
    read = draw.choice([file.Read_at, file.Read_at_all])
    read(start, [room, count, etype])
    assert bytes(room) == every[rank], way
    comm.Barrier()
    filetype.Free()


file = MPI.File.Open(comm, os.path.join(folder, "file"), MPI.MODE_CREATE | MPI.MODE_RDWR)
known = np.zeros(2 * FILE_BYTES, "u1")
file.Set_size(len(known))
for number in range(ROUNDS):
    round_of(file, known)
    written = np.fromfile(os.path.join(folder, "file"), "u1")
    assert (written == known).all(), (number, np.nonzero(written != known))
    comm.Barrier()
file.Close()
comm.Barrier()
if rank == 0:
    own_folder.cleanup()
