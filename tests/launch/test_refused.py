# SPDX-License-Identifier: MIT
"""Command lines that are refused before anything starts: a catalogue, and odd values for each option."""

import shlex
from pathlib import Path

import pytest

from spcomm import cli
from spcomm.launch import mpiexec
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.options import parse

STAND_FOR = {"{9}": "9" * 5000, "{x}": "x" * 5000, "{hosts}": ",".join(["a"] * 65), "{escape}": "\x1b"}
ROWS = [
    line.split(" | ")
    for line in (Path(__file__).parent / "refused.txt").read_text().splitlines()
    if line and line[0] != "#"
]


def answer(words, capsys):
    """The exit code and what stands on stderr. A run would begin in this process, so `run` is only parsed."""
    name, *arguments = words
    try:
        if name in ("run", "mpiexec"):
            parse(mpiexec.translated(arguments) if name == "mpiexec" else arguments)
            return 0, ""
        return cli._COMMANDS[name][0](arguments), capsys.readouterr().err
    except UsageError as error:
        return error.code, f"{error}\n"
    except SystemExit as end:
        return end.code, capsys.readouterr().err


@pytest.mark.parametrize("line, said", [(row[0], row[1:]) for row in ROWS], ids=[row[0][:60] for row in ROWS])
def test_the_catalogue(line, said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)
    for short, long in STAND_FOR.items():
        words = [word.replace(short, long) for word in words]
    code, text = answer(words, capsys)
    assert code == 125 and text.startswith(f"spcomm {words[0]}") and text.count("\n") == 1, (code, text)
    assert all(part in text for part in said), text


OPTIONS = [
    (name, option)
    for name in cli._COMMANDS
    if (parser := cli.parser_of(name)) is not None
    for option, action in parser.options.items()
]
ODD = [
    "",
    " ",
    "-1",
    "0",
    "nan",
    "9" * 5000,
    "1e999",
    "no such",
    "\x1b[2J\n",
    "٣",
    "\udcff",
    "a:b:c",
    ",",
    "x" * 5000,
]


@pytest.mark.parametrize("name, option", OPTIONS, ids=lambda word: word)
def test_odd_values(name, option, capsys, monkeypatch, tmp_path):
    """Each is taken, or refused in one printable line that names the option."""
    monkeypatch.chdir(tmp_path)
    parser = cli.parser_of(name)
    needed = ["ring" for action in parser._actions if action.required and not action.option_strings]
    for value in ODD:
        code, text = 0, ""
        try:
            if name == "run":
                parse([f"{option}={value}", "x.py"])
            else:
                parser.parse_args([f"{option}={value}", *needed])
        except UsageError as error:
            code, text = error.code, f"{error}\n"
        except SystemExit as end:
            code, text = end.code, capsys.readouterr().err
        named = any(spelling in text for spelling in parser.options[option].option_strings)
        refused = code == 125 and named and "\x1b" not in text and text.count("\n") == 1
        assert code == 0 or refused, (value[:20], code, text)
