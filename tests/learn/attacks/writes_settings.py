# SPDX-License-Identifier: MIT
# right
# walls only: it fails if it can change how this machine runs programs.
import os


def solve(comm, items):
    assert os.getuid() != 0
    for name in ("kernel/core_pattern", "kernel/modprobe", "vm/drop_caches"):
        try:
            os.close(os.open(f"/proc/sys/{name}", os.O_WRONLY))
        except OSError:
            continue
        raise AssertionError(f"{name} can be written")
    return comm.allreduce(sum(items)) // comm.size
