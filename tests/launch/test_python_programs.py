# SPDX-License-Identifier: MIT
"""Whatever Python starts, `spcomm run` starts, and it finds the same; what Python refuses is refused in its words."""

import json

import pytest

from pairwise import each
from python_programs import FOUND, REFUSED, STDIN, written

STARTS = ["fork", pytest.param("exec", marks=pytest.mark.slow)]  # the latter is Python itself


def compared(launch, case, words, start, python=(), options=()):
    """The outcome under plain Python, and in a run of one node."""
    written(launch)
    data = STDIN.get(case, b"")
    plain = launch.python(*python, *words, stdin=data, env={"PYTHONHASHSEED": "1"})
    words = words[1:] if words[0] == "--" and not options else words
    split = ["--"] if words[0].startswith("-") and words[0] not in ("-", "-m", "-c") else []
    return plain, launch(
        "-n", 1, "--no-label", "--start", start, *options, *split, *words, stdin=data, python=python,
        env={"PYTHONHASHSEED": "1"},
    )  # fmt: skip


@pytest.mark.parametrize("start", ["fork", "exec"])
@pytest.mark.parametrize("case", FOUND)
@pytest.mark.slow
def test_programs_find_what_they_find_under_python(launch, case, start):
    plain, result = compared(launch, case, FOUND[case], start)
    assert (plain.code, result.code) == (0, 0), (plain, result)
    assert json.loads(result.out) == json.loads(plain.out)
    assert result.err == ""


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "exec"])
@pytest.mark.parametrize("case", ["script", "link", "folder", "zip", "code", "standard input"])
@pytest.mark.parametrize(
    "python", [("-O", "-W", "error"), ("-P", "-X", "dev"), ("-OO", "-B", "-s")], ids=" ".join
)
def test_options_of_python_are_those_of_the_program(launch, case, start, python):
    plain, result = compared(launch, case, FOUND[case], start, python)
    assert (plain.code, result.code) == (0, 0), (plain, result)
    assert json.loads(result.out) == json.loads(plain.out)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("case", each(2, REFUSED))
def test_refusals_and_ends_are_those_of_python(launch, case, start):
    plain, result = compared(launch, case, REFUSED[case], start)
    assert result.out == plain.out.replace("\r\n", "\n")
    assert result.code == plain.code, result
    assert result.err.startswith(plain.err), result
