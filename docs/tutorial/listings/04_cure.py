# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size

theirs = comm.sendrecv(comm.rank, right, source=left)
print(f"node {comm.rank} got {theirs}")
