# SPDX-License-Identifier: MIT
# run: -n 4
# says: SP101 all 4 nodes wait, and no message is on its way
# hint: No matching message has been sent: each of these nodes waits to receive
"""Everybody waits for anybody."""

import spcomm

comm = spcomm.startup()
print(comm.recv())  # <- nodes 0-3: recv(source=ANY, tag=ANY)
comm.send(comm.rank, spcomm.OTHERS)
