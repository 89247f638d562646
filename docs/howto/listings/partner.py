# SPDX-License-Identifier: MIT
"""Does what nodes.c does, from Python.

spcomm run -n 2 partner.py
"""

import spcomm

comm = spcomm.startup()
comm.send(comm.rank**2, dest=0, tag=7)
if comm.rank == 0:
    print("the sum of all squares is", sum(comm.recv(tag=7) for _ in range(comm.size)))
