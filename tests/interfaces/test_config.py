# SPDX-License-Identifier: MIT
"""`spcomm config`, and that the header's version is the package's."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from spcomm import compiling


def config(*options):
    command = [sys.executable, "-m", "spcomm", "config", *options]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return answer.returncode, answer.stdout, answer.stderr


@pytest.mark.smoke
def test_each_option():
    code, out, err = config("--includedir")
    assert (code, err) == (0, "") and (Path(out.strip()) / "spcomm" / "speedescomm.hpp").is_file()
    code, out, err = config("--library")
    assert (code, err) == (0, "") and Path(out.strip()).name == "libspcomm.a" and Path(out.strip()).is_file()
    assert config("--version") == (0, f"{metadata.version('spcomm')}\n", "")


def test_the_order_is_the_compilers():
    assert config("--libs", "--cflags")[1] == config("--cflags", "--libs")[1]
    assert config("--cflags")[1].startswith("-I")
    assert config("--libs")[1].split()[0].endswith("libspcomm.a")


def test_without_options_it_prints_all():
    code, out, _ = config()
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [
        "--cflags",
        "--libs",
        "--includedir",
        "--library",
        "--version",
        "--mpi-bin",
    ]


def test_help():
    assert "usage: spcomm config" in config("--help")[1]


def test_a_missing_library_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "__file__", str(tmp_path / "spcomm" / "compiling.py"))
    with pytest.raises(FileNotFoundError, match="libspcomm"):
        compiling.library()
    with pytest.raises(FileNotFoundError, match="reinstall spcomm"):
        compiling.include_dir()


@pytest.mark.smoke
def test_the_header_has_this_version():
    text = (compiling.include_dir() / "spcomm" / "spcomm.h").read_text()
    assert re.search(r'#define SPCOMM_VERSION "(.*)"', text).group(1) == metadata.version("spcomm")
