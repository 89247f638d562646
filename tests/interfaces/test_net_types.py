# SPDX-License-Identifier: MIT
"""NET_INT and NET_DOUBLE of C, C++ and Python, and of a big-endian machine: the same bytes, and files read right.

The big-endian machine is an IBM Z (s390x) that qemu-user plays; its programs are made by Debian's cross compiler. The
first tests run without them.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spcomm
from net_arrays import element

SOURCE = Path(__file__).parent / "programs" / "net_types.cpp"
INTS = [0, 1, -2, 258, 2**31 - 1, -(2**31)]
DOUBLES = [0.0, -0.0, 1.5, -1e300, 5e-324, 3.141592653589793]
CROSS = ("s390x-linux-gnu-g++", "qemu-s390x")
INCLUDE = Path(__file__).resolve().parents[2] / "csrc" / "include"


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)


def bytes_of(order):
    """The file as the documentation says."""
    return b"".join(
        [element("int", order, number) for number in INTS]
        + [element("double", order, number) for number in DOUBLES]
    )


def check_arrays(data, foreign):
    """The values that Python reads in a file."""
    memory = bytearray(data)
    ints = np.frombuffer(memory, spcomm.NET_INT, 6)
    doubles = np.frombuffer(memory, spcomm.NET_DOUBLE, 6, 48)
    assert spcomm.foreign_count(ints) + spcomm.foreign_count(doubles) == foreign
    assert ints.tolist() == INTS and repr(doubles.tolist()) == repr(DOUBLES)
    spcomm.localize(ints), spcomm.localize(doubles)
    assert memory == bytes_of("<" if sys.byteorder == "little" else ">")


@pytest.fixture(scope="module")
def program(compiler):
    return compiler(SOURCE)


@pytest.fixture(scope="module")
def big_endian(tmp_path_factory):
    """Runs the program on a big-endian machine."""
    missing = [name for name in CROSS if not shutil.which(name)]
    if missing:
        pytest.skip(f"no big-endian machine to test on: {' and '.join(missing)} not installed")
    made = tmp_path_factory.mktemp("big-endian") / "net_types"
    options = "-std=c++11 -O2 -static -Wall -Wextra -Werror".split()
    answer = run(CROSS[0], *options, f"-I{INCLUDE}", SOURCE, "-o", made)
    assert answer.returncode == 0, answer.stderr
    return lambda *arguments: run(CROSS[1], made, *arguments)


@pytest.mark.slow
@pytest.mark.spread("standard")
@pytest.mark.parametrize("heterogeneous", [1, 0])
@pytest.mark.parametrize("standard", ["-std=c++11", "-std=c++20"])
def test_operators_and_conversion(compiler, heterogeneous, standard):
    options = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
    made = compiler(SOURCE, f"-DHETEROGENEOUS_DATA_TYPE={heterogeneous}", standard, *options)
    answer = run(made, "check")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


def test_the_headers_promise_the_bytes(program, tmp_path):
    """Python reads the bytes that C and C++ write, and the other way round; of both orders."""
    own, other = ("<", ">") if sys.byteorder == "little" else (">", "<")
    file = tmp_path / "file"
    assert run(program, "write", file).returncode == 0
    assert file.read_bytes() == bytes_of(own)
    check_arrays(file.read_bytes(), 0)
    arrays = np.array(INTS).astype(spcomm.NET_INT), np.array(DOUBLES).astype(spcomm.NET_DOUBLE)
    file.write_bytes(b"".join(array.byteswap().tobytes() for array in arrays))
    assert file.read_bytes() == bytes_of(other)
    check_arrays(file.read_bytes(), 12)
    answer = run(program, "read", file)
    assert (answer.returncode, answer.stdout) == (
        0,
        f"12 foreign, this machine writes {'L' if own == '<' else 'B'}\n",
    )


@pytest.mark.slow
def test_operators_and_conversion_on_a_big_endian_machine(big_endian):
    answer = big_endian("check")
    assert (answer.returncode, answer.stdout) == (0, "")


@pytest.mark.slow
def test_files_of_a_big_endian_machine_are_read_here_and_ours_there(program, big_endian, tmp_path):
    theirs, ours, again = tmp_path / "theirs", tmp_path / "ours", tmp_path / "again"
    assert big_endian("write", theirs).returncode == 0
    assert theirs.read_bytes() == bytes_of(">")
    check_arrays(theirs.read_bytes(), 12 if sys.byteorder == "little" else 0)
    here = run(program, "read", theirs)
    assert (here.returncode, here.stdout) == (0, "12 foreign, this machine writes L\n")
    assert run(program, "write", ours).returncode == 0
    there = big_endian("read", ours)
    assert (there.returncode, there.stdout) == (0, "12 foreign, this machine writes B\n")
    np.array(INTS).astype(spcomm.NET_INT).tofile(again)
    with open(again, "ab") as file:
        np.array(DOUBLES).astype(spcomm.NET_DOUBLE).tofile(file)
    assert big_endian("read", again).stdout == there.stdout
