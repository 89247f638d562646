# SPDX-License-Identifier: MIT
# run: -n 2 --stall 0.3 {} : -n 3 --group 1 {}
# says: SP102 nodes 1-2 of group 1 have been waiting for … s
# hint: Try: give that node less to do at a time
"""Two groups: those of group 0 have nothing to wait for."""

import time

import spcomm

comm = spcomm.startup()
if comm.group_id == 1 and comm.rank > 0:
    comm.barrier()  # <- nodes 1-2: barrier()
time.sleep(3600)  # <- node 0: sleeps, or waits for something else
