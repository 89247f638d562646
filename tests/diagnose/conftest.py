# SPDX-License-Identifier: MIT
"""Wrong programs, run by the real command: what it says, of which nodes, at which lines."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest

import cases
from launching import Launch, leaving_nothing


class AtPrograms(Launch):
    """Runs the programs of wrong/ where they are, and leaves no compiled modules there."""

    def environment(self, extra=None):
        return super().environment({"PYTHONDONTWRITEBYTECODE": "1", **(extra or {})})


@pytest.fixture
def launch(tmp_path):
    """Runs scripts by `spcomm run`."""
    yield from leaving_nothing(Launch(tmp_path))


@pytest.fixture
def at_programs():
    """Runs programs of wrong/ by `spcomm run`."""
    yield from leaving_nothing(AtPrograms(cases.FOLDER))


@pytest.fixture
def compiled(tmp_path):
    """The program of a case: its name, or the program made of its C source."""

    def make(case):
        if case.path.suffix != ".c":
            return case.path.name
        compiler = shlex.split(os.environ.get("CC", "cc"))
        if not shutil.which(compiler[0]):
            pytest.skip(f"no C compiler: {compiler[0]}")
        program = tmp_path / case.name
        config = subprocess.run(
            [sys.executable, "-m", "spcomm", "config", "--cflags", "--libs"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        command = [*compiler, "-std=c11", "-o", str(program), str(case.path), *shlex.split(config)]
        subprocess.run(command, check=True, timeout=120)
        return program

    return make
