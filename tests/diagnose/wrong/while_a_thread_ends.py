# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""The main thread has waited for long when a helper thread ends, which might have sent something."""

import threading
import time

import spcomm

comm = spcomm.startup()
threading.Thread(target=time.sleep, args=(0.5,)).start()
comm.recv(1 - comm.rank)  # <- node 0: recv(source=1, tag=ANY) | node 1: recv(source=0, tag=ANY)
