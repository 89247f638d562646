# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()

money = 10
if comm.rank == 2:
    money = money + 90
print(f"node {comm.rank} has {money}")
