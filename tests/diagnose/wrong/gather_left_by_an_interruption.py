# SPDX-License-Identifier: MIT
# run: -n 2 --arena 0
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: Node 0 waits in gather(root=0) for the part of node 1, which has left that call before its end
"""Node 1 is interrupted after it has entered, catches that, and goes on with something else. Without an arena its part
is a message that it has not sent yet."""

import os
import signal
import threading

import numpy as np

import spcomm

comm = spcomm.startup()
part = np.zeros(100_000)


def interrupt(thread):
    with open(f"/proc/self/task/{thread}/stat") as file:
        while file.read().rpartition(")")[2].split()[0] != "S":
            file.seek(0)
    os.kill(os.getpid(), signal.SIGINT)


if comm.rank == 1:
    other = threading.Thread(target=interrupt, args=(threading.get_native_id(),))
    try:
        other.start()
        comm.gather(part)
    except KeyboardInterrupt:
        other.join()
    comm.send("left", 0)
    comm.recv(0, tag=1)  # <- node 1: recv(source=0, tag=1)
else:
    comm.recv(1)
    comm.gather(part)  # <- node 0: gather(root=0) for the part of node 1
