# SPDX-License-Identifier: MIT
"""The C and C++ examples compile as they say, run alone and on four nodes, and check themselves."""

import re
from pathlib import Path

import pytest

from pairwise import each

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted([*EXAMPLES.glob("c/*.c"), *EXAMPLES.glob("cxx/*.cpp")])


def test_there_are_examples():
    three = {"pi", "heat", "token_ring"}
    assert three <= {path.stem for path in FILES if path.suffix == ".c"}
    assert three <= {path.stem for path in FILES if path.suffix == ".cpp"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_says_how_to_compile_it(path):
    text = path.read_text()
    compiler = "cc" if path.suffix == ".c" else "c++"
    assert re.search(
        rf"{re.escape(compiler)} -O2 {path.name} \$\(spcomm config --cflags --libs\) -o {path.stem} && "
        rf"spcomm run -n 4 \./{path.stem}\n",
        text,
    )
    assert len(text.splitlines()) < 60


@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("path", each(2, FILES), ids=lambda path: path.name)
def test_runs(path, nodes, compiler, launch):
    result = launch("--no-label", "-n", nodes, compiler(path, "-O2"))
    assert result.code == 0, result
    assert result.out.count("\n") == 1, result


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.slow
def test_runs_without_a_launcher(path, compiler, alone):
    code, out, err = alone(compiler(path, "-O2"))
    assert (code, err) == (0, "") and out.count("\n") == 1
