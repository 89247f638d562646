# SPDX-License-Identifier: MIT
"""In each step a different node is slow with the part that all others need."""

import sys
from time import sleep

import spcomm

STEPS = 8


def compute(seconds):
    sleep(seconds)  # stands for computing; so it shows even where nodes share a core


if sys.argv[1:] not in (["barrier"], ["fuzzy"]):
    sys.exit("usage: spcomm run -n 4 06_barrier.py barrier|fuzzy")
comm = spcomm.startup()
waited = 0.0
begin = comm.time()
for step in range(STEPS):
    compute(0.04 if step % comm.size == comm.rank else 0.01)  # what the others need
    if sys.argv[1] == "barrier":
        before = comm.time()
        comm.barrier()
        waited += comm.time() - before
        compute(0.03)  # what nobody else needs
    else:
        fb = comm.fuzzy_barrier()  # my part is there
        compute(0.03)  # what nobody else needs
        before = comm.time()
        fb.wait()  # now I need the parts of the others
        waited += comm.time() - before

total, waited = comm.global_max(comm.time() - begin), comm.global_sum(waited) / comm.size
if comm.rank == 0:
    print(f"{STEPS} steps in {total * 1e3:.0f} ms, of which a node waited {waited * 1e3:.0f} ms")
