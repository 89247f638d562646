# SPDX-License-Identifier: MIT
# run: -n 4
# says: SP101 nodes 1-3 of 4 wait for each other only, and no message is on its way
# circle: 1 → 2 → 3 → 1
# hint: let one node send before it receives
"""Three are stuck while node 0 computes without end."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    number = 0
    while True:
        number += 1
other = comm.rank % 3 + 1
comm.recv(other)  # <- node 1: recv(source=2, …) | node 2: recv(source=3, …) | node 3: recv(source=1, …)
