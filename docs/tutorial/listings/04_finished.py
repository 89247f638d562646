# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()

if comm.rank == 0:
    for _ in range(comm.size):  # one too many: node 0 sends nothing to itself
        print("node 0 got", comm.recv())
else:
    comm.send(comm.rank * 10, 0)
