# SPDX-License-Identifier: MIT
"""Runs of their own for a test: a program's text, started through `spcomm run` or by Python alone."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from nodepool import command, environment

PATIENCE_S = float(os.environ.get("SPCOMM_TEST_PATIENCE", "120"))
HEAD = "import os, signal, sys, time\nimport spcomm\ncomm = spcomm.startup()\nrank, size = comm.rank, comm.size\n"


@dataclass
class Result:
    """The end of a run."""

    code: int
    out: str
    err: str

    def lines(self):
        return sorted(self.out.splitlines())

    def __str__(self):
        return f"exit code {self.code}\n---- stdout\n{self.out}\n---- stderr\n{self.err}"


def write(folder, text, head=HEAD):
    """The program as a file: `comm`, `rank` and `size` are there already."""
    path = Path(folder, "program.py")
    path.write_text(head + textwrap.dedent(text))
    return path


def start(arguments, **options):
    return subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
        env=environment(**options.pop("env", {})), **options,
    )  # fmt: skip


def finish(process, patience=PATIENCE_S):
    """Waits for the end. A run that does not end is killed, and the test fails with what it said."""
    try:
        out, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        try:
            out, err = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        raise AssertionError(f"the run did not end:\n{Result(process.returncode, out, err)}") from None
    return Result(process.returncode, out, err)


def run(folder, nodes, text, *options, program=None, arguments=(), **more):
    """`spcomm run -n nodes [options] program.py [arguments]`; standard output comes without labels."""
    path = program or write(folder, text)
    line = command("run", "-n", nodes, "--no-label", "--timeout", PATIENCE_S / 2, *options, path, *arguments)
    return finish(start(line, cwd=folder, **more))


def alone(folder, text, *arguments, head=HEAD, **more):
    """`python program.py`: no launcher."""
    return finish(start([sys.executable, write(folder, text, head), *arguments], cwd=folder, **more))


def ok(result):
    assert result.code == 0, str(result)
    return result


def fifo(folder, name):
    """A named pipe: opening it for reading waits for somebody who opens it for writing."""
    path = os.path.join(folder, name)
    os.mkfifo(path)
    return path
