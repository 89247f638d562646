# SPDX-License-Identifier: MIT
# run: -n 1
# says: SP101 the node waits, and no message is on its way
# circle: 0 → 0
# hint: Node 0 sends synchronously to itself, and nobody else can
"""A synchronous send to itself."""

import spcomm

comm = spcomm.startup()
comm.ssend("note to self", comm.rank)  # <- node 0: ssend(dest=0, tag=0)
comm.recv()
