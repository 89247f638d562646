# SPDX-License-Identifier: MIT
# wrong: by SIGKILL
# unwalled: the program ended or stopped the process that watches over it
# It ends the process that forks nodes, the launcher, and the guard if it can be seen.
import os
import signal


def solve(comm, items):
    pid, kin = os.getppid(), []
    while pid > 1:
        with open(f"/proc/{pid}/cmdline") as file:
            command = file.read()
        if "spcomm.launch" not in command and "run" not in command and "limits.py" not in command:
            break
        kin.append(pid)
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
    for pid in reversed(kin):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return sum(items)
