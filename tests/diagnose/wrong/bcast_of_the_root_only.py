# SPDX-License-Identifier: MIT
# run: -n 3
# says: SP101 all 3 nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: Node 1 waits in bcast(root=1) for nodes 0, 2, which must call it, too
"""Only the root calls it; the others receive, as if it were a send."""

import spcomm

comm = spcomm.startup()


def share(settings):
    return comm.bcast(settings, root=1)  # <- node 1: bcast(root=1) in share


if comm.rank == 1:
    share({"steps": 10})
else:
    comm.recv(1)  # <- nodes 0, 2: recv(source=1, tag=ANY)
