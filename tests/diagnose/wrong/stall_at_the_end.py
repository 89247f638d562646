# SPDX-License-Identifier: MIT
# run: -n 2 --stall 0.3
# says: SP102 nodes 0-1 have been waiting for … s
# hint: The main program of nodes 0-1 has ended, and threads of it still wait
"""The program has ended, and Python waits for two threads, of which either might send to the other node."""

import threading

import spcomm

comm = spcomm.startup()


def work():
    comm.recv(1 - comm.rank)  # <- node 0: recv(source=1, …) | node 1: recv(source=0, …) in work


for _ in range(2):
    threading.Thread(target=work).start()
