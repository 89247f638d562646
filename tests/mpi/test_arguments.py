# SPDX-License-Identifier: MIT
"""No handle, rank, count or pointer of a caller crashes the library of MPI: each gets an error class and a sentence."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import argument_table
from spcomm import mpi

FORBIDDEN = ("crashes: ", "succeeds: ", "no sentence: ")


@pytest.mark.skipif(sys.platform == "darwin", reason="addresses and signals of Linux")
@pytest.mark.parametrize("abi", ["standard", pytest.param("mpich", marks=pytest.mark.slow)])
def test_wrong_arguments(launch, tmp_path, abi):
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not shutil.which(compiler[0]):
        pytest.skip(f"there is no compiler {compiler[0]}")
    generate = argument_table.generator()
    (tmp_path / "mpi.h").write_text(generate.header(abi))
    source = tmp_path / "arguments.c"
    source.write_text(argument_table.program(generate.functions()))
    library = Path(mpi.library(mpi.STANDARD if abi == "standard" else mpi.MPICH))
    linked = [
        library,
        f"-Wl,-rpath,{library.parent}",
        "-Wl,--disable-new-dtags",
        "-o",
        tmp_path / "arguments",
    ]
    command = [*compiler, "-std=gnu11", "-w", "-O0", f"-I{tmp_path}", source, *linked]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = launch("-n", 1, tmp_path / "arguments", tmp_path / "file")
    calls = int(result.lines[-1].removeprefix("calls "))
    wrong = [line for line in result.lines if line.startswith(FORBIDDEN)]
    assert result.code == 0 and not wrong and calls > 7000, (wrong, result.err)


def test_the_list_of_functions_agrees_with_the_sources():
    generate = argument_table.generator()
    send = next(function for function in generate.functions() if function.name == "Send")
    with pytest.raises(
        SystemExit, match=r"functions.txt: Send has no implementation: .* defines spc_mpi_send\("
    ):
        generate.check_defined(send, set())
    left_out = next(function for function in generate.functions() if function.is_left_out)
    with pytest.raises(SystemExit, match=f"{left_out.name} is left out"):
        generate.check_defined(left_out, {left_out.inner})
