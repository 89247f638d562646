# SPDX-License-Identifier: MIT
# run: -n 3
# says: SP101 all 3 nodes wait, and no message is on its way
# hint: is an answer missing, or a last message that ends a loop?
"""The master expects one result more than its workers send, and they wait for their next task."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    for worker in (1, 2):
        comm.send(worker, worker)
    results = [comm.recv() for _ in range(3)]  # <- node 0: recv(source=ANY, tag=ANY)
    comm.send(None, spcomm.OTHERS)
else:
    while (task := comm.recv(0)) is not None:  # <- nodes 1-2: recv(source=0, tag=ANY)
        comm.send(-task, 0)
