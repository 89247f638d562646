# SPDX-License-Identifier: MIT
"""The runner of processes for all tests, and processes as the system shows them: parent, children, name and state."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import leaks

WATCHDOG_S = 60.0
GOING_ON = {"running", "sleeping", "disk-sleep"}
STOPPED = {"stopped", "tracing-stop"}


def parent(pid):
    return psutil.Process(pid).ppid()


def children(pid):
    return [child.pid for child in psutil.Process(pid).children()]


def name(pid):
    """As `ps` shows it; "" once the process has ended."""
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return ""


def named(pids, beginning):
    """{name: process id} of those whose name begins so."""
    found = {name(pid): pid for pid in pids}
    return {its_name: pid for its_name, pid in found.items() if its_name.startswith(beginning)}


def state(pid):
    """A word of psutil's, such as "sleeping"; "gone" once the process has been reaped."""
    try:
        return psutil.Process(pid).status()
    except psutil.NoSuchProcess:
        return "gone"


def until(pid, states):
    """Wait until the process is in one of these states."""
    while state(pid) not in states:
        os.sched_yield()


# ---- started by a test


def spcomm_root():
    """Where the spcomm under test can be imported from any working directory."""
    import spcomm

    return str(Path(spcomm.__path__[0]).parent)


class Result:
    def __init__(self, code, out, err):
        self.code = code
        self.raw, self.raw_err = out, err
        self.out = out.decode(errors="replace")
        self.err = err.decode(errors="replace")

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def last(self):
        """The last line on stderr."""
        return self.err.splitlines()[-1] if self.err else ""

    def __repr__(self):
        return f"exit code {self.code}\n---- stdout\n{self.out}\n---- stderr\n{self.err}"


class Runner:
    """Starts commands in a folder. What they leave has a mark, and is found by it."""

    def __init__(self, folder):
        self.folder = folder
        self.token = f"spcomm-test-{os.getpid()}-{time.monotonic_ns()}"
        self.running = []

    def environment(self, extra=None):
        """Without what the test run itself was told; with a mark that all processes of the run inherit.

        As where spcomm is installed, programs find its command.
        """
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("SPCOMM_", "PYTHON", "OMP_"))
        }
        paths = [spcomm_root(), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **kept,
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(paths),
            "SPCOMM_TEST_TOKEN": self.token,
            **(extra or {}),
        }

    def popen(self, command, env=None, **options):
        """Start any command in the folder. Streams are pipes unless something else is given."""
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=self.folder,
            env=self.environment(env),
            bufsize=0,  # what a test reads by lines and what finish() reads come from the same place
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )
        self.running.append(process)
        return process

    def call(self, *command, stdin=None, env=None, **options):
        """The result of any command."""
        if stdin is not None:
            options["stdin"] = subprocess.PIPE
        return self.finish(self.popen(command, env, **options), stdin)

    def python(self, *words, **options):
        return self.call(sys.executable, *words, **options)

    def spcomm(self, *words, **options):
        return self.python("-m", "spcomm", *words, **options)

    def finish(self, process, stdin=None, patience=WATCHDOG_S):
        """Wait for a started run and say what became of it."""
        try:
            out, err = process.communicate(stdin, timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()
            for pid in self.alive() if sys.platform.startswith("linux") else ():
                os.kill(pid, signal.SIGKILL)
            out, err = process.communicate()
            pytest.fail(f"the run did not end\n{Result(None, out or b'', err or b'')!r}")
        return Result(process.returncode, out or b"", err or b"")

    def alive(self):
        """The processes of this test's runs that have not ended: {pid: command}."""
        mark, found = f"SPCOMM_TEST_TOKEN={self.token}".encode(), {}
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                    found[int(entry)] = leaks.command_of(entry)
            except OSError:
                pass
        return found

    def wait_until_nothing_is_left(self):
        """Wait for processes that are on their way out, and fail if one stays."""
        deadline = time.monotonic() + WATCHDOG_S
        for pid, command in self.alive().items():
            if not leaks.wait_for_end(pid, deadline):
                pytest.fail(f"process {pid} is left: {command}")
        assert not self.alive()

    def close(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None and not stream.closed:
                    stream.close()
            process.wait()


def read_lines(process, count):
    """The next lines of a run's stdout, as they come: a test's way to wait for something."""
    return [process.stdout.readline().decode().rstrip("\n") for _ in range(count)]


def read_until(stream, text):
    """Lines up to one that contains this: a test's way to wait for it."""
    found = ""
    while text not in found:
        line = stream.readline().decode()
        assert line, f"{text!r} did not come, but\n{found}"
        found += line
    return found
