# SPDX-License-Identifier: MIT
"""The life of communicators: groups, idup, split by type, attributes and info of duplicates, and many of them."""

from mpi4py import MPI

world = MPI.COMM_WORLD
size, rank = world.size, world.rank

# Groups: those outside take no part.
even = world.group.Incl(range(0, size, 2))
if rank % 2 == 0:
    made = world.Create_group(even, tag=3)
    assert made.rank == rank // 2 and made.size == even.size
    backwards = world.Create_group(even.Incl(range(even.size)[::-1]))
    assert backwards.rank == even.size - 1 - made.rank
    named = MPI.Intracomm.Create_from_group(even, "the even ones")
    assert MPI.Comm.Compare(made, named) == MPI.CONGRUENT
    for comm in (made, backwards, named):
        assert comm.bcast(comm.rank, root=comm.size - 1) == comm.size - 1
        comm.Free()
assert (world.Create(even) == MPI.COMM_NULL) == (rank % 2 == 1)

# A communicator keeps the hints of the standard, each until it is set anew; other keys and values are ignored.
comm = world.Split(0, rank)
presets = dict(comm.Get_info().items())
assert set(presets.values()) == {"false"}
comm.Set_info(MPI.Info.Create({"mpi_assert_exact_length": "true", "color": "blue"}))
comm.Set_info(MPI.Info.Create({"mpi_assert_no_any_tag": "true", "mpi_assert_no_any_source": "blue"}))
wanted = presets | {"mpi_assert_exact_length": "true", "mpi_assert_no_any_tag": "true"}
assert dict(comm.Get_info().items()) == wanted
comm.Free()
window = MPI.Win.Allocate(8, 1, MPI.Info.Create({"no_locks": "true", "color": "blue"}), MPI.COMM_SELF)
assert window.Get_info()["no_locks"] == "true" and "color" not in window.Get_info()
window.Free()

# Attributes go with a duplicate, hints do not, unless it is given them; a refused copy leaves nothing behind.
deleted = []
key = MPI.Comm.Create_keyval(
    lambda comm, key, value: value + 1, lambda comm, key, value: deleted.append(value)
)
comm = world.Dup()
comm.Set_attr(key, 10)
comm.Set_info(MPI.Info.Create({"mpi_assert_no_any_tag": "true"}))
copy, request = comm.Idup()
request.Wait()
assert copy.Get_attr(key) == 11 and copy.Get_info()["mpi_assert_no_any_tag"] == "false"
copy.Free()
copy = comm.Dup(MPI.Info.Create({"mpi_assert_exact_length": "true"}))
assert copy.Get_info()["mpi_assert_exact_length"] == "true"
copy.Free()
comm.Free()
assert deleted == [11, 11, 10]

# MPI_INFO_ENV can be read and copied, not changed.
MPI.INFO_ENV.Dup().Set("mine", "1")
try:
    MPI.INFO_ENV.Set("mine", "1")
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_INFO
else:
    raise AssertionError("MPI_INFO_ENV was changed")

# By type: what shares memory belongs together.
shared = world.Split_type(MPI.COMM_TYPE_SHARED)
assert 1 <= shared.size <= size
guided = world.Split_type(
    MPI.COMM_TYPE_HW_GUIDED, info=MPI.Info.Create({"mpi_hw_resource_type": "mpi_shared_memory"})
)
assert MPI.Comm.Compare(shared, guided) == MPI.CONGRUENT
assert world.Split_type(MPI.COMM_TYPE_HW_GUIDED, info=MPI.Info.Create()) == MPI.COMM_NULL
told = MPI.Info.Create()
smaller = world.Split_type(MPI.COMM_TYPE_HW_UNGUIDED, info=told)
assert (smaller == MPI.COMM_NULL) == (shared.size == size)
try:
    world.Split_type(12345)
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_ARG

# Many, one after the other; a message that nobody has received yet survives the sender's Free.
for turn in range(200):
    comm = world.Dup()
    comm.send(turn, dest=(rank + 1) % size)
    assert comm.recv(source=(rank - 1) % size) == turn
    comm.Free()
for _ in range(20):
    comm = world.Dup()
    comm.send(bytes(100000), dest=(rank + 1) % size)
    if rank % 2:
        assert len(comm.recv(source=(rank - 1) % size)) == 100000
        comm.Free()
    else:
        freed = MPI.Comm(comm)
        assert len(comm.recv(source=(rank - 1) % size)) == 100000
        comm.Free()
        try:
            freed.Get_rank()
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_COMM
