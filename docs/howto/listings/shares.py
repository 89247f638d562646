# SPDX-License-Identifier: MIT
"""Twelve tasks, of which the later ones take longer, in shares of equal length.

spcomm run -n 4 --virtual shares.py
"""

import spcomm

comm = spcomm.startup()
tasks = range(12)
begin = len(tasks) * comm.rank // comm.size
end = len(tasks) * (comm.rank + 1) // comm.size
for task in tasks[begin:end]:
    comm.work(task)
comm.barrier()
