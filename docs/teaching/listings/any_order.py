# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
if comm.rank == 1:
    comm.send("name of 1", dest=0)
    comm.send("size of 1", dest=0)
comm.barrier()  # node 1 is early today
if comm.rank == 0:
    names = [comm.recv() for _ in range(1, comm.size)]  # whoever comes first
comm.barrier()  # and node 2 is late
if comm.rank == 2:
    comm.send("name of 2", dest=0)
    comm.send("size of 2", dest=0)
if comm.rank == 0:
    sizes = [comm.recv(source=rank) for rank in range(1, comm.size)]
