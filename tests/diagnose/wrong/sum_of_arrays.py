# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: have every node call global_sum(), also those that take another branch
"""A sum of arrays against a receive."""

import numpy as np

import spcomm

comm = spcomm.startup()
part = np.ones((3, 4))
if comm.rank == 1:
    part = comm.recv(0)  # <- node 1: recv(source=0, tag=ANY)
comm.global_sum(part)  # <- node 0: global_sum() of an array of float64, 96 bytes
