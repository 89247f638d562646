# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    comm.send("hello", dest=1)
else:
    print(comm.recv())
