# SPDX-License-Identifier: MIT
# run: -n 5
# says: SP101 nodes 0-2 of 5 wait for each other only, and no message is on its way
# hint: All of these receive, and nobody is left who could send to them.
"""Two wait for anybody, and node 2 for one of them; the last two have left."""

import spcomm

comm = spcomm.startup()
if comm.rank > 2:
    comm.close()
elif comm.rank == 2:
    comm.recv(0, tag=1)  # <- node 2: recv(source=0, tag=1)
else:
    comm.recv(tag=2)  # <- nodes 0-1: recv(source=ANY, tag=2)
