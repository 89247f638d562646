# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""Threads that Python does not know wait until somebody in their node wakes them, as those of a library's pool do."""

import ctypes

import spcomm

comm = spcomm.startup()
c = ctypes.CDLL(None)
mutex = ctypes.create_string_buffer(256)  # all zero: a mutex that nobody has
c.pthread_mutex_lock(mutex)
c.pthread_create(ctypes.byref(ctypes.c_ulong()), None, c.pthread_mutex_lock, mutex)
comm.recv(1 - comm.rank)  # <- node 0: recv(source=1, tag=ANY) | node 1: recv(source=0, tag=ANY)
