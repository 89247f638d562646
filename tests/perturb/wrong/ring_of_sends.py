# SPDX-License-Identifier: MIT
# run: -n 4 --rendezvous 64K
"""Everybody sends a large array to the right before receiving from the left."""

import numpy as np

import spcomm

comm = spcomm.startup()
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
comm.send(np.full(100_000, comm.rank), right)
assert comm.recv(left)[0] == left
