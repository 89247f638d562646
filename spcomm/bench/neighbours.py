# SPDX-License-Identifier: MIT
"""The share of the machine that other programs used during a measurement: it shows whether to trust the numbers."""

import os
import resource
from pathlib import Path
from time import monotonic

# Columns of the first line of /proc/stat, after its name: user, nice, system, idle, iowait, irq, softirq, steal.
BUSY = (0, 1, 2, 5, 6, 7)
DISTURBING = 0.1  # cores that others kept busy: more makes numbers doubtful


class Neighbours:
    """Watches from its creation on. Only Linux reports this; elsewhere it is unknown."""

    def __init__(self, stat: Path = Path("/proc/stat")):
        self.stat = stat
        self.begin = monotonic()
        self.busy, self.own = busy_seconds(stat), own_seconds()

    def cores(self) -> float | None:
        """Return the cores that others kept busy on average, including time that the hypervisor took away."""
        busy = busy_seconds(self.stat)
        if busy is None or self.busy is None:
            return None
        others = (busy - self.busy) - (own_seconds() - self.own)
        return max(0.0, others / max(monotonic() - self.begin, 1e-9))


def busy_seconds(stat: Path) -> float | None:
    """Return the processor time that all programs used since the machine started."""
    try:
        words = stat.read_text().split("\n", 1)[0].split()[1:]
        return sum(int(words[column]) for column in BUSY) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None


def own_seconds() -> float:
    """Return the processor time of this process and of all its ended descendants."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
