# SPDX-License-Identifier: MIT
# run: -n 3
# says: SP101 all 3 nodes wait, and no message is on its way
# circle: 0 → 0
# hint: Node 0 receives from itself, and nobody else can
"""The node that sends to the others waits for its own message, too."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    comm.send("to all others", spcomm.OTHERS)
text = comm.recv(0)  # <- node 0: recv(source=0, tag=ANY)
comm.barrier()  # <- nodes 1-2: barrier()
