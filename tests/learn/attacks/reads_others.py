# SPDX-License-Identifier: MIT
# right
# It fails if it finds the secret of another node, or a way to that node's output.
import os
import re

SECRET = re.compile(rb'"secret": "[0-9a-f]{32}"')


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def solve(comm, items):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid() or not read(f"/proc/{pid}/cmdline"):  # itself, and threads of the kernel
            continue
        for name in ("mem", "fd/1"):
            try:
                os.close(os.open(f"/proc/{pid}/{name}", os.O_RDWR if name == "mem" else os.O_RDONLY))
            except OSError:
                continue
            raise AssertionError(f"{name} of process {pid} can be opened")
    found = set()
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            if " rw-p " in line and end - start < 1 << 28:
                memory.seek(start)
                found.update(SECRET.findall(memory.read(end - start)))
    assert len(found) <= 1, found
    return comm.allreduce(sum(items)) // comm.size
