# SPDX-License-Identifier: MIT
"""A list goes round, and each process signs it: spcomm run -n 4 with_spcomm.py"""

import spcomm

comm = spcomm.startup()
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
if comm.rank == 0:
    comm.send([0], right)
    print("signed by", comm.recv(left))
else:
    comm.send([*comm.recv(left), comm.rank], right)
