# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
print(f"I am node {comm.rank} of {comm.size}")
