# SPDX-License-Identifier: MIT
"""Node 0 hands out the work in small pieces: a node that is done early gets the next one."""

import sys
from time import sleep

import spcomm

WORK, DONE = 1, 2  # tags

comm = spcomm.startup()
pieces = [0.02] * 4 + [0.1] + [0.02] * 6  # seconds that each takes; nobody knows which is the long one

if comm.size < 2:
    sys.exit("this program needs a node that hands out and one that works: spcomm run -n 4")
if comm.rank == 0:
    results = []
    free = list(range(1, comm.size))
    waiting = list(enumerate(pieces))
    while len(results) < len(pieces):
        while free and waiting:
            comm.send(waiting.pop(0), dest=free.pop(0), tag=WORK)
        message = comm.recv_message(tag=DONE)
        results.append(message.data)
        free.append(message.source)
    comm.send(None, dest=spcomm.OTHERS, tag=WORK)  # there is no more
    print(f"all {len(results)} pieces are done: {sorted(results)}")
else:
    count = 0
    while (piece := comm.recv(source=0, tag=WORK)) is not None:
        number, seconds = piece
        sleep(seconds)  # stands for computing
        comm.send(number, dest=0, tag=DONE)
        count += 1
    print(f"node {comm.rank} is done")
    assert count > 0  # three nodes, eleven pieces: nobody is left out
