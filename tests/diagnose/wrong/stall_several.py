# SPDX-License-Identifier: MIT
# run: -n 4 --stall 0.3
# says: SP102 nodes 2-3 have been waiting for … s
# hint: give those nodes less to do at a time
"""Two nodes are busy, each with something of its own, the others wait for both."""

import time

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    sum(range(10**15))  # <- node 0: computes
elif comm.rank == 1:
    time.sleep(3600)  # <- node 1: sleeps, or waits for something else
else:
    comm.recv()  # <- nodes 2-3: recv(source=ANY, tag=ANY)
