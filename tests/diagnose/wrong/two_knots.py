# SPDX-License-Identifier: MIT
# run: -n 4
# says: SP101 all 4 nodes wait, and no message is on its way
# hint: nobody is left who could send to them
"""Two pairs; in each one waits for anybody of its part, the other for the first one."""

import spcomm

comm = spcomm.startup()
pair = comm.split(comm.rank // 2)
if pair.rank == 0:
    pair.recv()  # <- nodes 0, 2: recv(source=ANY, tag=ANY), in a part
else:
    pair.recv(0)  # <- nodes 1, 3: recv(source=0, tag=ANY), in a part
