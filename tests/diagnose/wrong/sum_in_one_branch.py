# SPDX-License-Identifier: MIT
# run: -n 3
# says: SP101 all 3 nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: Node 0 waits in global_sum() of an int for nodes 1-2, which must call it, too
"""The first node adds up before the others send what they should, and they wait for its answer."""

import spcomm

comm = spcomm.startup()


def total(mine):
    return comm.global_sum(mine)  # <- node 0: global_sum() of an int in total


if comm.rank == 0:
    answer = total(1)
    comm.send(answer, spcomm.OTHERS)
else:
    answer = comm.recv(0)  # <- nodes 1-2: recv(source=0, tag=ANY)
    total(answer)
