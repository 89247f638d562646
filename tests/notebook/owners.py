# SPDX-License-Identifier: MIT
"""Programs that own a cluster, in processes of their own; whether processes have ended, and nodes are well."""

import os
import select
import subprocess
import sys
import textwrap

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
    for number in processes:
        try:
            descriptor = os.pidfd_open(number)
        except ProcessLookupError:
            continue
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            if not poll.poll(WATCHDOG_S * 1000):
                return False
        finally:
            os.close(descriptor)
    return True


def is_well(cluster):
    return cluster.execute("comm.global_sum(comm.rank)") == [sum(range(cluster.size))] * cluster.size
