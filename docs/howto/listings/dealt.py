# SPDX-License-Identifier: MIT
"""Twelve tasks, of which the later ones take longer, dealt out in turn.

spcomm run -n 4 --virtual dealt.py
"""

import spcomm

comm = spcomm.startup()
tasks = range(12)
for task in tasks[comm.rank :: comm.size]:
    comm.work(task)
comm.barrier()
