# SPDX-License-Identifier: MIT
# run: -n 2 --stall 0.3
# says: SP102 nodes 0-1 have been waiting for … s
# hint: it is not proven, because one of them has other threads, which may send or receive.
"""A thread that Python does not know sleeps in node 0, and may call back into Python."""

import ctypes

import spcomm

comm = spcomm.startup()
c = ctypes.CDLL(None)
if comm.rank == 0:
    c.pthread_create(ctypes.byref(ctypes.c_ulong()), None, c.sleep, ctypes.c_void_p(3600))
comm.recv(1 - comm.rank)  # <- node 0: recv(source=1, tag=ANY) | node 1: recv(source=0, tag=ANY)
