# SPDX-License-Identifier: MIT
"""A Slurm of pretend machines, made by scripts/pretend-slurm."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "pretend-slurm"
CANNOT = 77  # its exit status where a Slurm cannot be had


def pretend(*words, **more):
    """The finished script."""
    return subprocess.run(
        [SCRIPT, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, **more
    )


def variables(text):
    """{name: value} of the lines that `up` prints."""
    words = [word for line in text.splitlines() for word in shlex.split(line.removeprefix("export "))]
    return dict(word.split("=", 1) for word in words)


def processes(folder):
    """The processes whose command line names a folder, or a file in it: {pid: command}."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            command = (
                Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
        except OSError:
            continue
        if entry.isdigit() and str(folder) in command and int(entry) != os.getpid():
            found[int(entry)] = command
    return found


class Slurm:
    """Pretend machines box0, box1 and so on, until `close`."""

    def __init__(self, machines, *words):
        self.machines = machines
        # Sockets have short names, and other users reach them.
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-")) / "s"
        self.folder.parent.chmod(0o755)
        made = pretend("up", machines, "--in", self.folder, *words)
        if made.returncode:
            self.folder.parent.rmdir()
            (pytest.skip if made.returncode == CANNOT else pytest.fail)(made.stderr.strip())
        self.variables = variables(made.stdout)

    def __call__(self, *words, env=None, **more):
        """The finished command of Slurm."""
        return subprocess.run(
            list(map(str, words)),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env={**(os.environ if env is None else env), **self.variables},
            **more,
        )

    def close(self):
        """End all of it."""
        done = pretend("down", "--in", self.folder)
        assert done.returncode == 0, done
        self.folder.parent.rmdir()
