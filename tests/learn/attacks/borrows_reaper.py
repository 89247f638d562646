# SPDX-License-Identifier: MIT
# right
# walls only: it fails if a process of its own user has no filter of system calls: it could borrow that process.
import contextlib
import glob
import os


def solve(comm, items):
    filtered = []
    for place in glob.glob("/proc/[0-9]*/status"):
        with contextlib.suppress(OSError), open(place) as status:  # it may have ended
            if os.fstat(status.fileno()).st_uid == os.getuid():
                filtered.append("Seccomp:\t2" in status.read())
    assert filtered and all(filtered), filtered
    return comm.allreduce(sum(items)) // comm.size
