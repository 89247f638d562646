# SPDX-License-Identifier: MIT
"""Files that all nodes write and read together."""

import os
import tempfile

import numpy as np
from mpi4py import MPI

from course import program, say, say_all

MODE = MPI.MODE_CREATE | MPI.MODE_RDWR


class Folder:
    """A folder of node 0 that goes when all are done."""

    def __init__(self, comm):
        self.comm = comm

    def __enter__(self):
        self.own = tempfile.TemporaryDirectory() if self.comm.rank == 0 else None
        return os.path.join(self.comm.bcast(self.own.name if self.own else None), "data")

    def __exit__(self, *error):
        self.comm.Barrier()
        if self.own:
            self.own.cleanup()


@program()
def blocks_of_a_file(comm):
    """Each writes its block at its place, and reads its neighbour's."""
    with Folder(comm) as path:
        file = MPI.File.Open(comm, path, MODE)
        file.Write_at_all(comm.rank * 16, np.arange(4, dtype="i") + 10 * comm.rank)
        file.Sync()
        comm.Barrier()
        block = np.zeros(4, "i")
        file.Read_at((comm.rank + 1) % comm.size * 16, block)
        size = file.Get_size()
        file.Close()
        say_all(comm, (block.tolist(), size))


@program()
def interleaved(comm):
    """A view of every size-th element."""
    with Folder(comm) as path:
        file = MPI.File.Open(comm, path, MODE)
        vector = MPI.INT.Create_resized(0, 4 * comm.size).Commit()
        file.Set_view(4 * comm.rank, MPI.INT, vector)
        file.Write_all(np.arange(5, dtype="i") + 100 * comm.rank)
        file.Close()
        vector.Free()
        say(comm, np.fromfile(path, "i").tolist() if comm.rank == 0 else None)


@program()
def matrix_in_a_file(comm):
    """Blocks of columns by subarrays; read by rows."""
    with Folder(comm) as path:
        shape = [4, 2 * comm.size]
        kind = MPI.DOUBLE.Create_subarray(shape, [4, 2], [0, 2 * comm.rank]).Commit()
        file = MPI.File.Open(comm, path, MODE)
        file.Set_view(0, MPI.DOUBLE, kind)
        file.Write_all(np.arange(8.0).reshape(4, 2) + 10 * comm.rank)
        file.Set_view(0, MPI.DOUBLE, MPI.DOUBLE)
        file.Sync()
        comm.Barrier()
        row = np.zeros(2 * comm.size)
        file.Read_at_all(comm.rank % 4 * 2 * comm.size, row)
        file.Close()
        kind.Free()
        say_all(comm, row.tolist())


@program()
def lines_in_order(comm):
    """Exscan of lengths gives each its place in a text."""
    with Folder(comm) as path:
        text = f"node {comm.rank} was here{'!' * comm.rank}\n".encode()
        place = comm.exscan(len(text)) or 0
        file = MPI.File.Open(comm, path, MODE)
        file.Write_at_all(place, text)
        file.Close()
        if comm.rank == 0:
            with open(path) as written:
                print(written.read(), end="")


@program("shared")
def shared_pointer(comm):
    """Write_ordered in the order of ranks, by the pointer that all share."""
    with Folder(comm) as path:
        file = MPI.File.Open(comm, path, MODE)
        for step in range(2):
            file.Write_ordered(np.full(comm.rank + 1, 10 * step + comm.rank, "i2"))
        file.Close()
        say(comm, np.fromfile(path, "i2").tolist() if comm.rank == 0 else None)


@program("shared")
def header_and_parts(comm):
    """A sequential file: node 0 reads the header, and the view of all begins behind it."""
    with Folder(comm) as path:
        if comm.rank == 0:
            np.array([comm.size, *range(comm.size)], "i").tofile(path)
        comm.Barrier()
        file = MPI.File.Open(comm, path, MPI.MODE_RDONLY | MPI.MODE_SEQUENTIAL)
        header, mine = np.zeros(1, "i"), np.zeros(1, "i")
        if comm.rank == 0:
            file.Read_shared(header)
        comm.Barrier()
        file.Set_view(MPI.DISPLACEMENT_CURRENT, MPI.INT, MPI.INT)
        file.Read_ordered(mine)
        file.Close()
        say_all(comm, (int(header[0]), int(mine[0])))


@program()
def own_pointer(comm):
    """Seek, and read in a row; each node has a pointer of its own."""
    with Folder(comm) as path:
        if comm.rank == 0:
            np.arange(40, dtype="i").tofile(path)
        comm.Barrier()
        file = MPI.File.Open(comm, path, MPI.MODE_RDONLY)
        file.Set_view(0, MPI.INT, MPI.INT)
        file.Seek(comm.rank + 2)
        parts, status = [], MPI.Status()
        for _ in range(3):
            part = np.zeros(6, "i")
            file.Read(part, status)
            parts.append(part[: status.Get_count(MPI.INT)].tolist())
        place = file.Get_position()
        file.Read_at(37, np.zeros(6, "i"), status)
        parts.append(status.Get_count(MPI.INT))
        file.Close()
        say_all(comm, (parts[0][0], *parts[-2:], place))


@program()
def nonblocking_file(comm):
    """Iwrite_at, something else, Wait."""
    with Folder(comm) as path:
        file = MPI.File.Open(comm, path, MODE)
        data = np.full(3, comm.rank + 0.5)
        request = file.Iwrite_at(24 * comm.rank, data)
        total = comm.allreduce(comm.rank)
        request.Wait()
        file.Close()
        say(comm, total, np.fromfile(path).tolist() if comm.rank == 0 else None)


@program()
def missing_file(comm):
    """Errors of files come back."""
    try:
        MPI.File.Open(comm, "/nonexistent/file", MPI.MODE_RDONLY)
        found = "opened"
    except MPI.Exception as error:
        found = error.Get_error_class() in (MPI.ERR_NO_SUCH_FILE, MPI.ERR_FILE)
    say(comm, found)
