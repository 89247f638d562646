# SPDX-License-Identifier: MIT
"""Compiles test programs in C by make; workers that want the same ones take turns."""

import fcntl
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def make(makefile, *goals):
    """The finished process."""
    command = ["make", "-s", f"-j{os.cpu_count()}", "-f", makefile, *goals]
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / "make.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
