# SPDX-License-Identifier: MIT
# run: -n 3
# says: SP101 all 3 nodes wait, and no message is on its way
# circle: 0 → 2 → 0
# hint: Nodes 0-1 wait in fuzzy_barrier() for node 2, which must call it, too
"""The same with enter and wait."""

import spcomm

comm = spcomm.startup()


def finish(fuzzy):
    fuzzy.wait()  # <- nodes 0-1: fuzzy_barrier() in finish


if comm.rank == 2:
    comm.recv(0)  # <- node 2: recv(source=0, tag=ANY)
finish(comm.fuzzy_barrier())
comm.send("done", 2)
