# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
items = list(range(7))[comm.rank :: comm.size]
mean = sum(items) / (len(items) - 1)  # node 3 has one item
print(comm.global_sum(mean))
