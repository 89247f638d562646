# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()

numbers = range(1, 101)
mine = numbers[comm.rank :: comm.size]
total = comm.global_sum(sum(mine))
print(f"node {comm.rank}: the numbers from 1 to 100 are {total} together")
