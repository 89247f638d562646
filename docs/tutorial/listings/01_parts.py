# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()

numbers = range(1, 101)
mine = numbers[comm.rank :: comm.size]
print(f"node {comm.rank} adds {mine[0]}, {mine[1]}, {mine[2]}, …: {sum(mine)}")
