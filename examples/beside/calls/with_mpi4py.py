# SPDX-License-Identifier: MIT
"""Call by call, the same as with_spcomm.py: mpiexec -n 4 python with_mpi4py.py"""

import operator

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
right, left = (rank + 1) % size, (rank - 1) % size


def show(name, value):
    """The results of all ranks, on rank 0."""
    values = comm.gather(value)
    if rank == 0:
        print(name, values)


# ---- meet
comm.barrier()
fuzzy = comm.Ibarrier()
while not fuzzy.Test():
    pass  # compute
fuzzy.Wait()

# ---- reduce
show("sum", comm.allreduce(rank))
show("minimum", comm.allreduce(rank, op=MPI.MIN))
show("maximum", comm.allreduce(rank, op=MPI.MAX))
show("product", comm.allreduce(rank + 1, op=MPI.PROD))
show("where", comm.allreduce((abs(rank - 2), rank), op=MPI.MINLOC))
show("to one", comm.reduce([rank], op=operator.add, root=0))
show("up to me", comm.scan(rank + 1))
show("before me", comm.exscan(rank + 1))
total = np.empty(3)
comm.Allreduce(np.arange(3.0) * rank, total)
show("array", total.tolist())

# ---- move data
show("from one", comm.bcast({"step": 1} if rank == 0 else None, root=0))
show("a part each", comm.scatter([r * r for r in range(size)] if rank == 0 else None, root=0))
show("all of all", comm.allgather(rank))
show("each to each", comm.alltoall([(rank, r) for r in range(size)]))

# ---- send and receive objects
request = comm.isend({"from": rank}, right, tag=7)
show("recv", comm.recv(source=left, tag=7))
request.wait()
show("exchange", comm.sendrecv(rank, right, source=left))
request = comm.isend("hello", right, tag=5)
status = MPI.Status()
data = comm.recv(status=status)
request.wait()
show("who, what", (status.Get_source(), status.Get_tag(), data))
request = comm.isend("look", right)
comm.probe(status=status)
show("looked", comm.recv(source=status.Get_source(), tag=status.Get_tag()))
request.wait()
request = comm.isend("poll", right)
while not comm.iprobe(status=status):
    pass  # compute
show("polled", comm.recv(source=status.Get_source(), tag=status.Get_tag()))
request.wait()
requests = [comm.isend("to several", r) for r in range(size)] if rank == 0 else []
show("several", comm.recv(source=0))
MPI.Request.waitall(requests)

# ---- arrays
mine, theirs = np.full(1000, float(rank)), np.empty(1000)
request = comm.Isend(mine, right)
comm.Recv(theirs, source=left)
request.Wait()
show("out", theirs[999])
comm.Sendrecv(mine, left, recvbuf=theirs, source=right)
show("out both", theirs[999])
at_end = comm.recv(source=MPI.PROC_NULL)
show("nobody", at_end)

# ---- parts
part = comm.Split(rank % 2, key=-rank)
show("part", (part.rank, part.size))
part.Free()
