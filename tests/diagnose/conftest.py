# SPDX-License-Identifier: MIT
"""Wrong programs, run by the real command: what it says, of which nodes, at which lines."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest


@pytest.fixture
def written(tmp_path):
    """The program of a case, where `launch` runs: its name, or the program made of its C source."""

    def make(case):
        path = case.entry.write(tmp_path)
        if path.suffix != ".c":
            return path.name
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
        command = [*compiler, "-std=c11", "-o", str(program), str(path), *shlex.split(config)]
        subprocess.run(command, check=True, timeout=120)
        return program

    return make
