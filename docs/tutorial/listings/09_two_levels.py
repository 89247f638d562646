# SPDX-License-Identifier: MIT
"""A sum in two levels: first within each box, then between one node of each box."""

import spcomm

comm = spcomm.startup()
value = 10**comm.rank

with comm.split(comm.box) as here:
    subtotal = here.global_sum(value)
    leaders = comm.split(0 if here.rank == 0 else None)
    total = leaders.global_sum(subtotal) if leaders else None
    total = here.bcast(total)

assert total == comm.global_sum(value)  # which does it in this way by itself
print(f"node {comm.rank}, box {comm.box}: {subtotal} here, {total} in all")
