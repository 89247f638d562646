# SPDX-License-Identifier: MIT
# run: -n 4 --perturb
"""Floating-point numbers are added in the order in which they come, and the sum is compared for equality."""

import spcomm

comm = spcomm.startup()
values = [0.0, 1e16, 1.0, -1e16]
if comm.rank == 0:
    total = sum(comm.recv() for _ in range(comm.size - 1))
    assert total == sum(values[1:]), total
else:
    comm.send(values[comm.rank], 0)
