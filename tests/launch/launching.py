# SPDX-License-Identifier: MIT
"""Runs `spcomm run` as a user does, in a process of its own, and looks at what it wrote and left behind."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import leaks
from spcomm.launch.cmdline import boxes
from spcomm.launch.cmdline.groups import gather
from spcomm.launch.cmdline.options import parse
from spcomm.launch.cmdline.plan import Plan

WATCHDOG_S = 60.0
STARTS = ("fork", "exec")


def spcomm_root():
    """Where the spcomm under test can be imported from any working directory."""
    import spcomm

    return str(Path(spcomm.__path__[0]).parent)


def planned(words):
    """The programs and the groups of a command line, with the boxes of their nodes."""
    options = parse(words)
    plans = [
        Plan("script", part.name, [], nodes=part.nodes, group=part.group, boxes=part.boxes)
        for part in options.parts
    ]
    if options.boxes is not None:
        plans = boxes.place(options, plans)
    return gather(plans)


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


class Launch:
    """Writes scripts into a folder and runs them there."""

    def __init__(self, folder):
        self.folder = folder
        self.token = f"spcomm-test-{os.getpid()}-{time.monotonic_ns()}"
        self.running = []

    def script(self, text, name="program.py"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

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

    def command(self, *arguments, python=()):
        return [sys.executable, *python, "-m", "spcomm", "run", *map(str, arguments)]

    def start(self, *arguments, env=None, python=(), **options):
        """Start a run without waiting for it."""
        return self.begin(self.command(*arguments, python=python), env, **options)

    def begin(self, command, env=None, **options):
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

    def spcomm(self, *words, env=None, **options):
        """The result of any command of spcomm."""
        return self.finish(self.begin([sys.executable, "-m", "spcomm", *words], env, **options))

    def finish(self, process, stdin=None):
        """Wait for a started run and say what became of it."""
        try:
            out, err = process.communicate(stdin, timeout=WATCHDOG_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            pytest.fail(f"the run did not end\n{Result(None, out or b'', err or b'')!r}")
        return Result(process.returncode, out or b"", err or b"")

    def __call__(self, *arguments, stdin=None, env=None, python=(), **streams):
        if stdin is not None:
            streams["stdin"] = subprocess.PIPE
        return self.finish(self.start(*arguments, env=env, python=python, **streams), stdin)

    def program(self, text, *arguments, options=(), **more):
        """Write a script and run it."""
        return self(*options, self.script(text), *arguments, **more)

    def alive(self):
        """The processes of this test's runs that have not ended: {pid: command}."""
        mark, found = f"SPCOMM_TEST_TOKEN={self.token}".encode(), {}
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                    found[int(entry)] = (
                        Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                    )
            except (OSError, UnicodeDecodeError):
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


# Takes options and a host as ssh does, and runs the command here. A forwarded port is the same at both ends.
_SSH = """#!/bin/sh
while [ $# -gt 2 ]; do
  case $1 in
    -R) echo "Allocated port ${2##*:} for remote forward to 127.0.0.1:${2##*:}" >&2; shift 2;;
    -*) shift 2;;
    *) break;;
  esac
done
echo "Welcome to $1: what a login shell prints is no concern of ours"
[ -f "${0%/*}/$1.box" ] && exec $PYTHON "${0%/*}/$1.box"
shift
exec sh -c "$*"
"""


def stand_in_for_ssh(folder):
    """Write a command for --ssh, and return its path. On HOST it runs folder/HOST.box, if that is there, as the box."""
    path = folder / "ssh"
    path.write_text(_SSH.replace("$PYTHON", sys.executable))
    path.chmod(0o755)
    return str(path)


def leaving_nothing(launch):
    """Sees to it that nothing of any run is left when the test ends."""
    yield launch
    launch.close()
    if sys.platform.startswith("linux"):
        launch.wait_until_nothing_is_left()
