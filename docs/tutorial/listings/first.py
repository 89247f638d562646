# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
total = comm.global_sum(comm.rank)
print(f"node {comm.rank} of {comm.size}: the sum of all ranks is {total}")
