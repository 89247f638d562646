# SPDX-License-Identifier: MIT
# run: -n 2 --stall 0.3
# says: SP102 node 0 has been waiting for … s
# hint: Try: give that node less to do at a time
"""Node 1 does declared work, and node 0 waits for its message."""

import spcomm

comm = spcomm.startup()


def step():
    comm.work(3_600_000)  # <- node 1: works, in comm.work() in step


if comm.rank == 1:
    step()
else:
    comm.recv(1, tag=2)  # <- node 0: recv(source=1, tag=2)
