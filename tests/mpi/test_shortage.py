# SPDX-License-Identifier: MIT
"""Each allocation of the MPI library fails once: the program goes on, or ends with a sentence (preloaded.c)."""

import os
import platform
import shlex
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.linux("LD_PRELOAD and the names of glibc")
@pytest.mark.parametrize("name", ["windows.c", "idup.c"])
def test_a_program_without_memory_ends_with_a_sentence(c_program, launch, tmp_path, name):
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the allocator of another C library has other names")
    library, met = tmp_path / "preloaded.so", tmp_path / "met"
    command = [*shlex.split(os.environ.get("CC", "cc")), "-O1", "-shared", "-fPIC", "-o", library]
    subprocess.run([*command, HERE / "preloaded.c"], check=True)
    assert c_program(name, 2).code == 0
    program = tmp_path / Path(name).stem
    for number in range(1, 1000):
        more = {"LD_PRELOAD": str(library), "SHORTAGE": str(number), "SHORTAGE_MET": str(met)}
        words = ["/usr/bin/env", *(f"{key}={value}" for key, value in more.items()), program]
        result = launch("-n", 2, "--timeout", 60, *words)
        if not met.exists():
            break
        met.unlink()
        assert result.code < 100 and (result.code == 0) == (result.err == ""), (number, result)
    assert number > 100 and result.code == 0, (number, result)
