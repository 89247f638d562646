# SPDX-License-Identifier: MIT
# run: -n 3 --stall 1
# says: SP102 nodes 1-2 have been waiting for … s
# hint: Try: check that the loop there ends; give that node less to do at a time. To be warned later: --stall TIME.
"""Node 0 computes, and the others wait for it."""

import spcomm

comm = spcomm.startup()


def crunch():
    return sum(range(10**15))  # <- node 0: computes in crunch


if comm.rank == 0:
    crunch()
comm.barrier()  # <- nodes 1-2: barrier()
