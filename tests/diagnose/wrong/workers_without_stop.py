# SPDX-License-Identifier: MIT
# run: -n 4
# says: SP101 all 4 nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: Node 0 waits in barrier() for nodes 1-3, which must call it, too.
"""The master forgets to tell its workers that there is no more work."""

import spcomm

WORK, RESULT = 1, 2
comm = spcomm.startup()


def work():
    while True:
        task = comm.recv(0, tag=WORK)  # <- nodes 1-3: recv(source=0, tag=1) in work
        if task is None:
            return
        comm.send(task * task, 0, tag=RESULT)


if comm.rank == 0:
    for worker in range(1, comm.size):
        comm.send(worker, worker, tag=WORK)
    print(sum(comm.recv(tag=RESULT) for _ in range(1, comm.size)))
else:
    work()
comm.barrier()  # <- node 0: barrier()
