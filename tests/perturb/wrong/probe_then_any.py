# SPDX-License-Identifier: MIT
# run: -n 3 --perturb
"""Looks from whom the next message is, and then takes just any."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    for _ in range(10):
        source = comm.probe().source
        assert comm.recv() == source
else:
    for _ in range(5):
        comm.send(comm.rank, 0)
