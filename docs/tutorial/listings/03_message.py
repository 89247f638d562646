# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()

if comm.rank == 0:
    comm.send("the numbers are in file 7", 1)
if comm.rank == 1:
    text = comm.recv(0)
    print(f"node 1 was told: {text}")
