# SPDX-License-Identifier: MIT
# run: -n 2 --perturb
"""Node 0 writes a file in each step, node 1 reads it, and nothing says when it is there."""

import os

import spcomm

comm = spcomm.startup()
for step in range(5):
    path = f"written-{os.getppid()}-{step}"
    if comm.rank == 0:
        with open(path, "w") as file:
            file.write("settings")
    comm.poll()
    if comm.rank == 1:
        with open(path) as file:
            assert file.read() == "settings"
    comm.barrier()
