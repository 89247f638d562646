# SPDX-License-Identifier: MIT
"""Call by call, the same as with_mpi4py.py: spcomm run -n 4 with_spcomm.py"""

import operator

import numpy as np

import spcomm

comm = spcomm.startup()
rank, size = comm.rank, comm.size
right, left = (rank + 1) % size, (rank - 1) % size


def show(name, value):
    """The results of all nodes, on node 0."""
    values = comm.gather(value)
    if rank == 0:
        print(name, values)


# ---- meet
comm.barrier()
fuzzy = comm.fuzzy_barrier()
while not fuzzy.done():
    pass  # compute
fuzzy.wait()

# ---- reduce
show("sum", comm.global_sum(rank))
show("minimum", comm.global_min(rank))
show("maximum", comm.global_max(rank))
show("product", comm.allreduce(rank + 1, op=spcomm.PROD))
show("where", comm.allreduce((abs(rank - 2), rank), op=spcomm.MINLOC))
show("to one", comm.reduce([rank], op=spcomm.op(operator.add), root=0))
show("up to me", comm.scan(rank + 1))
show("before me", comm.exscan(rank + 1))
show("array", comm.global_sum(np.arange(3.0) * rank).tolist())

# ---- move data
show("from one", comm.bcast({"step": 1} if rank == 0 else None, root=0))
show("a part each", comm.scatter([r * r for r in range(size)] if rank == 0 else None, root=0))
show("all of all", comm.allgather(rank))
show("each to each", comm.alltoall([(rank, r) for r in range(size)]))

# ---- send and receive objects
comm.send({"from": rank}, right, tag=7)
show("recv", comm.recv(left, 7))
show("exchange", comm.sendrecv(rank, right, source=left))
comm.send("hello", right, tag=5)
message = comm.recv_message()
show("who, what", (message.source, message.tag, message.data))
comm.send("look", right)
found = comm.probe()
show("looked", comm.recv(found.source, found.tag))
comm.send("poll", right)
while (message := comm.try_recv_message()) is None:
    pass  # compute
show("polled", message.data)
if rank == 0:
    comm.send("to several", spcomm.ALL)
show("several", comm.recv(0))

# ---- arrays
mine, theirs = np.full(1000, float(rank)), np.empty(1000)
comm.send(mine, right)
comm.recv(left, out=theirs)
show("out", theirs[999])
comm.sendrecv(mine, left, source=right, out=theirs)
show("out both", theirs[999])
at_end = comm.recv(spcomm.PROC_NULL)
show("nobody", at_end)

# ---- parts
part = comm.split(rank % 2, key=-rank)
show("part", (part.rank, part.size))
part.close()
