# SPDX-License-Identifier: MIT
"""The same program on 1, 2, 4 … nodes: what does each bring, and how much of it cannot be divided?"""

from time import sleep

import spcomm

ALONE, DIVIDED = 0.03, 0.24  # seconds: what one node does, and what all share


def program(part):
    with part.region("alone"):
        if part.rank == 0:
            sleep(ALONE)  # stands for reading the input
    part.barrier()
    with part.region("divided"):
        sleep(DIVIDED / part.size)
    part.barrier()


comm = spcomm.startup()
n, first = 1, None
while n <= comm.size:
    with comm.split(0 if comm.rank < n else 1) as part:
        if comm.rank < n:
            begin = part.time()
            program(part)
            seconds = part.time() - begin
            first = first or seconds
        if comm.rank == 0:
            speedup = first / seconds
            line = f"n = {n}: {seconds * 1e3:.0f} ms, speed-up {speedup:.1f} times"
            if n > 1:
                serial = (1 / speedup - 1 / n) / (1 - 1 / n)  # Karp and Flatt
                line += f", not divided: {serial * 100:.0f} %"
            print(line)
    n *= 2
