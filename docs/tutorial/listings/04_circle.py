# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size

theirs = comm.recv(left)
comm.send(comm.rank, right)
print(f"node {comm.rank} got {theirs}")
