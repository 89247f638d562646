# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()

parts = [25, 50, 75]
mine = parts[comm.rank]
comm.barrier()
print(f"node {comm.rank} has {mine}")
