# SPDX-License-Identifier: MIT
# run: -n 2 --perturb
"""Takes the entry of a fuzzy barrier for the barrier."""

import os

import spcomm

comm = spcomm.startup()
for step in range(5):
    path = f"entered-{os.getppid()}-{step}"
    if comm.rank == 0:
        with open(path, "w") as file:
            file.write("all is ready")
    barrier = comm.fuzzy_barrier()
    if comm.rank == 1:
        with open(path) as file:
            assert file.read() == "all is ready"
    barrier.wait()
