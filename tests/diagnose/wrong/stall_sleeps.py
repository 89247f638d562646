# SPDX-License-Identifier: MIT
# run: -n 2 --stall 0.3
# says: SP102 node 0 has been waiting for … s
# hint: Try: give that node less to do at a time
"""Node 1 sleeps, and node 0 waits for its message."""

import time

import spcomm

comm = spcomm.startup()
if comm.rank == 1:
    time.sleep(3600)  # <- node 1: sleeps, or waits for something else
else:
    comm.recv(1, tag=2)  # <- node 0: recv(source=1, tag=2)
