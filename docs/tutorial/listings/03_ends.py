# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()

right = comm.rank + 1 if comm.rank + 1 < comm.size else spcomm.PROC_NULL
left = comm.rank - 1 if comm.rank > 0 else spcomm.PROC_NULL

temperature = 20.0 + comm.rank
from_left = comm.sendrecv(temperature, right, source=left)
from_right = comm.sendrecv(temperature, left, source=right)
print(f"node {comm.rank}: {from_left} on the left, {from_right} on the right")
