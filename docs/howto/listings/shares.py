# SPDX-License-Identifier: MIT
"""Twelve tasks, of which the later ones take longer, in shares of equal length.

spcomm run -n 4 --virtual shares.py
"""

import spcomm

comm = spcomm.startup()
tasks = range(12)
share = len(tasks) // comm.size
for task in tasks[comm.rank * share : (comm.rank + 1) * share]:
    comm.work(task)
comm.barrier()
