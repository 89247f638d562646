# SPDX-License-Identifier: MIT
# run: -n 4 --perturb
"""Workers send results to node 1 and say so to node 0, which then asks node 1 for the sum: it may ask too early.

Messages of one sender keep their order; those of several do not.
"""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    for _ in range(comm.size - 2):
        comm.recv(tag=1)
    comm.send("sum", 1)
    assert comm.recv(1, tag=2) == sum(range(2, comm.size))
elif comm.rank == 1:
    total = 0
    while (value := comm.recv(tag=0)) != "sum":
        total += value
    comm.send(total, 0, tag=2)
else:
    comm.send("done", 0, tag=1)
    comm.send(comm.rank, 1)
