# SPDX-License-Identifier: MIT
"""Fixtures: a compiler for C and C++ programs, told by `spcomm config`, and a run of one without a launcher."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STRICT = ["-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
COMPILERS = {
    ".c": (os.environ.get("CC", "cc"), "-std=c11"),
    ".cpp": (os.environ.get("CXX", "c++"), "-std=c++11"),
}


def config(*options):
    command = [sys.executable, "-m", "spcomm", "config", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Compiler:
    """Makes programs of source files; each once."""

    def __init__(self, folder):
        self.folder = folder
        self.made = {}
        self.flags = shlex.split(config("--cflags")), shlex.split(config("--libs"))

    def run(self, source, *options, output=None):
        """Compile one file, and link it if `output` is given; the finished process."""
        command, standard = COMPILERS[Path(source).suffix]
        words = shlex.split(command)
        if not shutil.which(words[0]):
            pytest.skip(f"no compiler for {Path(source).suffix} files: {words[0]}")
        cflags, libs = self.flags
        rest = ["-o", output, *libs] if output else ["-c", "-o", os.devnull]
        given = [option for option in options if option.startswith("-std=")] or [standard]
        line = [*words, *given, *STRICT, *cflags, *options, str(source), *map(str, rest)]
        return subprocess.run(line, capture_output=True, text=True, timeout=120)

    def __call__(self, source, *options):
        """The program made of this file."""
        source = Path(source)
        key = (source, options)
        if key not in self.made:
            output = self.folder / f"{source.stem}-{len(self.made)}"
            answer = self.run(source, *options, output=output)
            if answer.returncode != 0:
                pytest.fail(f"{source.name} does not compile:\n{answer.stderr}", pytrace=False)
            self.made[key] = output
        return self.made[key]


@pytest.fixture(scope="session")
def compiler(tmp_path_factory):
    return Compiler(tmp_path_factory.mktemp("compiled"))


@pytest.fixture
def alone(launch):
    """Runs a program outside of `spcomm run`; a `Result`-like (code, stdout, stderr)."""

    def run(program, *arguments, env=None):
        answer = subprocess.run(
            [str(program), *map(str, arguments)],
            env=launch.environment(env),
            cwd=launch.folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return answer.returncode, answer.stdout, answer.stderr

    return run
