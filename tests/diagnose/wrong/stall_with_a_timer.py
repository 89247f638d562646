# SPDX-License-Identifier: MIT
# run: -n 2 --stall 0.3
# says: SP102 nodes 0-1 have been waiting for … s
# hint: it is not proven, because one of them has set a timer and handles signals.
"""A timer of node 1 might send."""

import signal

import spcomm

comm = spcomm.startup()
if comm.rank == 1:
    signal.signal(signal.SIGALRM, lambda *_: comm.send("late", 0))
    signal.alarm(3600)
comm.barrier() if comm.rank == 0 else comm.recv(0)  # <- node 0: barrier() | node 1: recv(source=0, tag=ANY)
