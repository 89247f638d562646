# SPDX-License-Identifier: MIT
"""Files: a matrix written through views, a log by the shared pointer."""

import os
import tempfile

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
own_folder = tempfile.TemporaryDirectory() if rank == 0 else None
folder = comm.bcast(own_folder.name if rank == 0 else None)
MODE = MPI.MODE_CREATE | MPI.MODE_RDWR


def matrix():
    """Each writes its columns; then all read the whole."""
    file = MPI.File.Open(comm, f"{folder}/matrix", MODE)
    columns = MPI.INT32_T.Create_subarray([6, 3 * size], [6, 3], [0, 3 * rank]).Commit()
    file.Set_view(8, MPI.INT32_T, columns)
    mine = np.arange(18, dtype="i4").reshape(6, 3) + 100 * rank
    status = MPI.Status()
    file.Write_all(mine, status)
    assert status.Get_count(MPI.INT32_T) == 18
    file.Sync()
    assert file.Get_size() == 8 + 4 * 18 * size
    back = np.zeros_like(mine)
    file.Read_at(3, back[1])
    assert list(back[1]) == list(mine[1]), back
    file.Set_view(8, MPI.INT32_T, MPI.INT32_T)
    everything = np.empty((6, 3 * size), "i4")
    file.Read_at_all(0, everything)
    assert (everything[:, 3 * rank : 3 * rank + 3] == mine).all(), everything
    file.Close()


def external():
    """external32 is big-endian, whatever the machine."""
    file = MPI.File.Open(comm, f"{folder}/external", MODE)
    file.Set_view(0, MPI.INT32_T, MPI.INT32_T, "external32")
    file.Write_at_all(rank, np.array([rank + 1], "i4"))
    file.Sync()
    numbers = np.empty(size, "i4")
    file.Read_at_all(0, numbers)
    file.Close()
    assert list(numbers) == list(range(1, size + 1)), numbers
    assert list(np.fromfile(f"{folder}/external", ">i4")) == list(numbers)


def log():
    """Lines of the shared pointer lie side by side, in any order; ordered ones in the order of ranks."""
    file = MPI.File.Open(comm, f"{folder}/log", MODE)
    for _ in range(10):
        file.Write_shared(bytes([65 + rank]) * 4)
    comm.Barrier()
    file.Write_ordered(bytes([97 + rank]) * (rank + 1))
    assert file.Get_position_shared() == 40 * size + size * (size + 1) // 2
    file.Seek_shared(0)
    first = bytearray(4)
    file.Read_ordered(first)
    file.Close()
    with open(f"{folder}/log", "rb") as text:
        written = text.read()
    lines = [written[at : at + 4] for at in range(0, 40 * size, 4)]
    assert first == lines[rank]
    assert sorted(lines) == sorted(bytes([65 + node]) * 4 for node in range(size) for _ in range(10)), lines
    assert written[40 * size :] == b"".join(bytes([97 + node]) * (node + 1) for node in range(size)), written


def refusals():
    """Errors come as MPI's classes, and name the file."""
    for error_class, mode in (
        (MPI.ERR_NO_SUCH_FILE, MPI.MODE_RDONLY),
        (MPI.ERR_AMODE, MPI.MODE_RDONLY | MPI.MODE_CREATE),
    ):
        try:
            MPI.File.Open(comm, f"{folder}/nothing", mode)
        except MPI.Exception as error:
            assert error.Get_error_class() == error_class, error
            assert f"{folder}/nothing" in str(error), error
        else:
            raise AssertionError(mode)


def views():
    """The bytes of a view follow one another, and lie apart if they are written; a view may have none."""
    types = {
        "good": ([1, 1], [1, 3]),
        "none": ([], []),
        "negative": ([1, 1], [-2, 2]),
        "backwards": ([1, 1], [3, 0]),
        "twice": ([3, 1], [0, 1]),
    }
    for mode, refused in (
        (MPI.MODE_RDWR, {"negative", "backwards", "twice"}),
        (MPI.MODE_RDONLY, {"negative", "backwards"}),
    ):
        file = MPI.File.Open(comm, f"{folder}/matrix", mode)
        for name, (lengths, places) in types.items():
            filetype = MPI.INT32_T.Create_indexed(lengths, places).Commit()
            try:
                file.Set_view(0, MPI.INT32_T, filetype)
            except MPI.Exception as error:
                assert name in refused and error.Get_error_class() == MPI.ERR_IO, (name, error)
            else:
                assert name not in refused, name
                file.Read_all([bytearray(8), 0 if name == "none" else 2, MPI.INT32_T])
                file.Seek(0, MPI.SEEK_END)
                assert (file.Get_position() == 0) == (name == "none")
            filetype.Free()
        file.Close()


def hints():
    """A file keeps the hints of the standard, each until it is set anew."""
    file = MPI.File.Open(
        comm, f"{folder}/matrix", MPI.MODE_RDONLY, MPI.Info.Create({"cb_nodes": "3", "color": "red"})
    )
    file.Set_info(MPI.Info.Create({"access_style": "read_once"}))
    file.Set_view(0, MPI.BYTE, MPI.BYTE, "native", MPI.Info.Create({"cb_nodes": "2"}))
    assert dict(file.Get_info().items()) == {"access_style": "read_once", "cb_nodes": "2"}
    file.Close()


matrix()
views()
hints()
external()
refusals()
log()
comm.Barrier()
assert sorted(os.listdir(folder)) == ["external", "log", "matrix"], os.listdir(folder)
comm.Barrier()
if rank == 0:
    own_folder.cleanup()
