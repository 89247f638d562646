# SPDX-License-Identifier: MIT
# run: -n 2 {} : -n 2 --group 1 {}
# says: SP101 both nodes of group 1 wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""Two groups: the nodes of group 1 are stuck, those of group 0 have other things to do."""

import time

import spcomm

comm = spcomm.startup()
if comm.group_id == 0:
    time.sleep(3600)
comm.recv(1 - comm.rank)  # <- node 0: recv(source=1, tag=ANY) | node 1: recv(source=0, tag=ANY)
