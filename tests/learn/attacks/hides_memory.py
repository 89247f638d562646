# SPDX-License-Identifier: MIT
# right
# walls only: it fails if it gets memory that no limit counts.
import ctypes
import os

NEW_USER = 0x10000000
GETS_A_SEGMENT, OF_ALL = 0o1600, 0


def solve(comm, items):
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.shmget(OF_ALL, 1 << 20, GETS_A_SEGMENT) == -1
    assert libc.msgget(OF_ALL, GETS_A_SEGMENT) == -1
    assert libc.unshare(NEW_USER) == -1
    assert os.fork() or os._exit(0) is None
    assert os.wait()[1] == 0
    return comm.allreduce(sum(items)) // comm.size
