# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
comm.fuzzy_barrier()
print(f"node {comm.rank} thinks that all are here")
