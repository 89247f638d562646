# SPDX-License-Identifier: MIT
# run: -n 3 --stall 0.3
# says: SP103 nodes 0-1 keep polling, and nothing has been sent for … s
# hint: Try: find the node that should send
"""Two ask whether a fuzzy barrier is over that node 2 never enters."""

import spcomm

comm = spcomm.startup()
if comm.rank == 2:
    comm.recv(0)  # <- node 2: recv(source=0, tag=ANY)
fuzzy = comm.fuzzy_barrier()
while not fuzzy.done():  # <- nodes 0-1: polls
    pass
comm.send("over", 2)
