# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# hint: Try:
"""A helper thread has ended; the main thread waits."""

import threading

import spcomm

comm = spcomm.startup()
helper = threading.Thread(target=comm.send, args=("by a thread", 1 - comm.rank))
helper.start()
helper.join()
print(comm.recv(1 - comm.rank))
print(comm.recv(1 - comm.rank))  # <- nodes 0-1: recv(source=rank+1, tag=ANY)
