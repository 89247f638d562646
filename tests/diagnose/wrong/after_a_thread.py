# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""A helper thread has ended; the main thread waits."""

import threading

import spcomm

comm = spcomm.startup()
helper = threading.Thread(target=comm.send, args=("by a thread", 1 - comm.rank))
helper.start()
helper.join()
print(comm.recv(1 - comm.rank))
print(comm.recv(1 - comm.rank))  # <- node 0: recv(source=1, tag=ANY) | node 1: recv(source=0, tag=ANY)
