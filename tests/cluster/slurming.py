# SPDX-License-Identifier: MIT
"""A Slurm of pretend machines, made by scripts/pretend-slurm."""

import os
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from launching import Launch
from processes import Result

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


# TERM is for spcomm run, which ends then; its exit code comes after it.
_JOB = """#!/bin/sh
trap : TERM
{command} </dev/null >out 2>err
echo $? >code.new
mv code.new code
"""


class Job:
    """A batch job of a run in a folder of its own."""

    def __init__(self, slurm, launch, words, given, env):
        self.slurm, self.folder = slurm, launch.folder
        command = shlex.join(launch.command(*words))
        (self.folder / "job").write_text(_JOB.format(command=command))
        submitted = slurm(
            "sbatch",
            "--parsable",
            "-o",
            "/dev/null",
            *given,
            "job",
            cwd=self.folder,
            env=launch.environment(env),
        )
        assert submitted.returncode == 0, submitted
        self.number = submitted.stdout.strip()

    def wait_for(self, *names):
        """Wait until these files are there, or the run has ended."""
        while not all((self.folder / name).exists() for name in names):
            if (self.folder / "code").exists():
                pytest.fail(f"the run ended early: {self.result()!r}")
            time.sleep(0.01)  # no process of this one can tell

    def result(self):
        """The result of the run, once it has ended."""
        while not (self.folder / "code").exists():
            time.sleep(0.01)
        out, err, code = ((self.folder / name).read_bytes() for name in ("out", "err", "code"))
        return Result(int(code), out, err)


class Cluster(Launch):
    """Runs in batch jobs of a Slurm. Nothing of them may be left."""

    def __init__(self, folder, slurm):
        super().__init__(folder)
        self.slurm = slurm
        self.jobs = []

    def submit(self, *words, machines=2, tasks=2, given=(), env=None):
        """Begin a run in a job with so many tasks on each of its machines."""
        given = (f"--nodes={machines}", f"--nodelist=box[0-{machines - 1}]", *given)
        if tasks is not None:
            given = (*given, f"--ntasks-per-node={tasks}")
        for name in ("code", "out", "err"):
            (self.folder / name).unlink(missing_ok=True)
        self.jobs.append(Job(self.slurm, self, words, given, env))
        return self.jobs[-1]

    def __call__(self, *words, **more):
        return self.submit(*words, **more).result()

    def close(self):
        """Cancel what a failed test has left."""
        for job in self.jobs:
            self.slurm("scancel", "--quiet", job.number)
        super().close()
