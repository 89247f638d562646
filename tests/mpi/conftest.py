# SPDX-License-Identifier: MIT
"""Fixtures: programs with mpi4py and programs in C, run on spcomm's MPI library."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spcomm

PROGRAMS = Path(__file__).parent / "programs"
MPI = Path(spcomm.__path__[0], "mpi")
MACOS = sys.platform == "darwin"
FOR_PYTHON = MPI / "lib" / ("libmpi.12.dylib" if MACOS else "libmpi.so.12")


@pytest.fixture
def python_program(launch):
    """Runs a program of programs/ with mpi4py on so many nodes; more arguments are the run's options."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")

    def run(name, nodes, *options, arguments=()):
        return launch(
            "-n", nodes, *options, PROGRAMS / name, *arguments, env={"MPI4PY_LIBMPI": str(FOR_PYTHON)}
        )

    return run


@pytest.fixture
def c_program(launch, tmp_path):
    """Compiles a program of programs/ with spcomm's mpi.h, and runs it."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not shutil.which(compiler[0]):
        pytest.skip(f"there is no compiler {compiler[0]}")

    def run(name, nodes, *options, arguments=()):
        made = tmp_path / Path(name).stem
        library = MPI / "lib" / ("libmpi_abi.1.dylib" if MACOS else "libmpi_abi.so.1")
        flags = ["-std=c11", "-g", "-Wall", "-Wextra", "-Werror", f"-I{MPI / 'include'}"]
        linked = [library, f"-Wl,-rpath,{library.parent}", "-o", made]
        command = [*compiler, *flags, PROGRAMS / name, *linked]
        answer = subprocess.run(command, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        return launch("-n", nodes, *options, made, *arguments)

    return run


@pytest.fixture
def mpi4py():
    """The package of that name; a test that needs it is skipped without it."""
    return pytest.importorskip("mpi4py", reason="mpi4py is not installed: pip install 'mpi4py>=4.1'")
