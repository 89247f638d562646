# SPDX-License-Identifier: MIT
"""Programs that own a cluster, in processes of their own; whether processes have ended, and nodes are well."""

import subprocess
import sys
import textwrap
import time

from leaks import wait_for_end

WATCHDOG_S = 60.0
KEPT = "The nodes were interrupted, and keep their variables."


class Owner:
    """A Python program; what it prints is read line by line."""

    def __init__(self, text, *arguments):
        command = [sys.executable, "-u", "-c", textwrap.dedent(text), *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def line(self):
        return self.process.stdout.readline().strip()

    def numbers(self):
        return [int(word) for word in self.line().split()]

    def finish(self):
        """Its exit code, the rest of its output, and its errors."""
        out, err = self.process.communicate(timeout=WATCHDOG_S)
        return self.process.returncode, out, err


def have_ended(processes):
    """Wait until all of them have; False if one has not."""
    deadline = time.monotonic() + WATCHDOG_S
    return all(wait_for_end(number, deadline) for number in processes)


def is_well(cluster):
    return cluster.execute("comm.global_sum(comm.rank)") == [sum(range(cluster.size))] * cluster.size
