# SPDX-License-Identifier: MIT
"""No handle, rank, count or pointer of a caller crashes the MPI library: each gets an error class and a sentence."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import argument_table
from spcomm import mpi

FORBIDDEN = ("crashes: ", "succeeds: ", "no sentence: ", "is refused: ")


def compile_with(text, tmp_path, abi):
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not shutil.which(compiler[0]):
        pytest.skip(f"there is no compiler {compiler[0]}")
    (tmp_path / "mpi.h").write_text(argument_table.generator().header(abi))
    source = tmp_path / "arguments.c"
    source.write_text(text)
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
    return tmp_path / "arguments"


def check(result, least):
    calls = int(result.lines[-1].removeprefix("calls "))
    wrong = [line for line in result.lines if line.startswith(FORBIDDEN)]
    assert result.code == 0 and not wrong and calls > least, (wrong, result.err)


@pytest.mark.linux("addresses and signals of Linux")
@pytest.mark.parametrize("abi", ["standard", pytest.param("mpich", marks=pytest.mark.slow)])
def test_wrong_arguments(launch, tmp_path, abi):
    program = argument_table.program(argument_table.generator().functions())
    check(launch("-n", 1, compile_with(program, tmp_path, abi), tmp_path / "file"), 7000)


@pytest.mark.linux("addresses and signals of Linux")
def test_calls_before_the_start_and_after_the_end(launch, tmp_path):
    generate = argument_table.generator()
    program = argument_table.program_outside(generate.functions(), generate.AT_ANY_TIME.fullmatch)
    check(launch("-n", 1, compile_with(program, tmp_path, "standard")), 1000)


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


@pytest.mark.parametrize("name", ["constants.txt", "functions.txt", "generate.py"])
def test_make_build_compiles_what_these_files_change(name):
    command = ["make", "-n", "-W", f"csrc/mpi/{name}", "build"]
    made = subprocess.run(
        command, cwd=argument_table.SOURCES.parents[1], capture_output=True, text=True, check=True
    )
    assert "build_ext" in made.stdout
