# SPDX-License-Identifier: MIT
# run: -n 2 --stall 0.3
# says: SP102 nodes 0-1 have been waiting for … s
# hint: it is not proven, because one of them has other threads, which may send or receive.
"""Another thread of node 0 might send."""

import threading
import time

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
comm.recv(1 - comm.rank)  # <- node 0: recv(source=1, tag=ANY) | node 1: recv(source=0, tag=ANY)
