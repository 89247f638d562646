# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()

if comm.rank == 0:
    comm.send("result", 1, tag=3)
if comm.rank == 1:
    print(comm.recv(0, tag=4))
