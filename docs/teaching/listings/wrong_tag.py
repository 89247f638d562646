# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    comm.send([3, 1, 2], dest=1, tag=10)
elif comm.rank == 1:
    print(comm.recv(source=0, tag=11, timeout=1))
