# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    best = comm.global_max(comm.rank)
else:
    best = comm.global_max(float(comm.rank))
