# SPDX-License-Identifier: MIT
# run: -n 2 --stall 0.3
# says: SP103 node 0 keeps polling, and nothing has been sent for … s
# hint: Try: find the node that should send
"""Node 0 asks for a tag that nobody uses."""

import spcomm

comm = spcomm.startup()


def look():
    while comm.try_recv_message(source=1, tag=1) is None:  # <- node 0: polls in look
        pass


if comm.rank == 0:
    look()
else:
    comm.send("here it is", dest=0, tag=2)
    comm.barrier()  # <- node 1: barrier()
