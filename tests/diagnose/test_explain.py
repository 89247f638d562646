# SPDX-License-Identifier: MIT
"""`spcomm explain`: each page's wrong program says what the page says it does, and the mended one ends well."""

import re
import subprocess
import sys

import pytest

from pairwise import each
from spcomm.diagnose import explain

CODES = [f"SP{number}" for number in range(101, 109)]


def spcomm(*words):
    command = [sys.executable, "-m", "spcomm", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def blocks(code, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", explain.page(code), re.MULTILINE | re.DOTALL)


def command(code):
    """The options and the name of the program."""
    [words] = re.findall(r"`spcomm run (.*?)`", explain.page(code))
    return words.split()


@pytest.mark.smoke
def test_all_codes_are_listed():
    result = spcomm("explain")
    listed = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("SP1")]
    assert result.returncode == 0 and listed == CODES == explain.codes()
    assert "deadlock" in result.stdout and "never" not in result.stderr


@pytest.mark.parametrize("word", ["SP106", "sp106", "106", "(SP106)"])
def test_a_page(word):
    result = spcomm("explain", word)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("SP106: messages that nobody received\n")
    assert "```" not in result.stdout and "\n    import spcomm\n" in result.stdout


@pytest.mark.parametrize(("columns", "most"), [("60", 60), ("3", 30), ("500", 100)])
def test_paragraphs_are_as_wide_as_the_terminal(columns, most, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    lines = explain.shown("# Title\n\n" + "word longer_words_are_not_broken " * 30).splitlines()
    assert most - 30 < max(map(len, lines)) <= most and len(lines) > 3


@pytest.mark.parametrize(("word", "code"), [("DEADLOCK", "SP101"), ("stalls", "SP102"), ("cycle", "SP107")])
def test_a_word_of_the_title_will_do(word, code):
    result = spcomm("explain", word)
    assert result.returncode == 0 and result.stdout.startswith(f"{code}: ")


@pytest.mark.parametrize("code", CODES)
def test_paragraphs_fit_a_terminal_and_keep_their_words(code):
    shown, page = explain.shown(explain.page(code)), explain.page(code)
    assert max(len(line) for line in shown.splitlines() if not line.startswith("    ")) <= 100
    assert shown.split() == [word for word in re.sub(r"^(```.*|#+ )", "", page, flags=re.MULTILINE).split()]


def matches(line, text):
    """`…` stands for anything."""
    return re.search("^" + ".*".join(map(re.escape, line.split("…"))) + "$", text, re.MULTILINE)


@pytest.mark.parametrize("code", each(3, CODES))
def test_the_wrong_program_says_what_the_page_says(launch, code):
    *options, name = command(code)
    launch.script(blocks(code, "python")[0], name)
    result = launch(*options, name)
    [output] = blocks(code, "text")
    missing = [line for line in output.splitlines() if not matches(line, result.err)]
    assert not missing, f"{missing}\n{result!r}"
    assert code in output and code in result.err


@pytest.mark.parametrize("code", each(3, CODES))
def test_the_mended_program_ends_well(launch, code):
    *options, name = command(code)
    launch.script(blocks(code, "python")[1], name)
    result = launch(*options, name)
    assert result.code == 0 and result.err == "", result
