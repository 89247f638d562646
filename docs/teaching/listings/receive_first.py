# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
theirs = comm.recv(source=left)  # everybody receives first
comm.send(comm.rank, dest=right)
print(f"node {comm.rank} got {theirs}")
