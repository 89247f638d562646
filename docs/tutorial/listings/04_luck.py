# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size

comm.send(comm.rank, right)
theirs = comm.recv(left)
print(f"node {comm.rank} got {theirs}")
