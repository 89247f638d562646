# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    for number in range(10):
        comm.send(number, dest=1 + number % (comm.size - 1))
else:
    for _ in range(3):
        comm.recv(source=0)
