# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: Node 0 has a message from node 1 with tag 1, and waits for one of tag 2.
"""The answer has another tag than node 0 waits for."""

import spcomm

QUESTION, ANSWER = 1, 2
comm = spcomm.startup()
if comm.rank == 0:
    comm.send("why?", 1, tag=QUESTION)
    comm.recv(1, tag=ANSWER)  # <- node 0: recv(source=1, tag=2)
else:
    comm.recv(0, tag=QUESTION)
    comm.send("so.", 0, tag=QUESTION)
    comm.recv(0, tag=QUESTION)  # <- node 1: recv(source=0, tag=1)
