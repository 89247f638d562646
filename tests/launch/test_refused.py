# SPDX-License-Identifier: MIT
"""Command lines that are refused before anything starts: a catalogue, and odd values for each option."""

import importlib
import os
import shlex
from pathlib import Path

import pytest

from launching import planned
from spcomm import cli, mpi
from spcomm._core import segments
from spcomm.launch import mpiexec
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.options import check_buffers, parse
from spcomm.launch.remote import mpi_link
from spcomm.model.command import COMMANDS as MODELS

STAND_FOR = {
    "{9}": "9" * 5000, "{x}": "x" * 5000, "{hosts}": ",".join(["a"] * 65), "{escape}": "\x1b",
    "{bin}": str(mpi.folder("bin")),
}  # fmt: skip
HERE, IN_A_PROCESS = (
    [line.split(" | ") for line in part.splitlines() if " | " in line]
    for part in (Path(__file__).parent / "refused.txt").read_text().split("# ==== in a process")
)
for name, says in mpiexec._REFUSED.items():
    HERE.append([f"mpiexec --{name} ./a", f"--{name}: {says}"])


def answer(words, capsys):
    """The exit code and what stands on stderr. A run would begin in this process, so `run` only gets a plan."""
    name, *arguments = words
    try:
        if name in ("run", "mpiexec"):
            arguments = mpiexec.translated(arguments) if name == "mpiexec" else arguments
            options = parse(arguments)
            check_buffers(options, segments.LIMITS)
            if options.link == "mpi":
                mpi_link.choose_command(options)
            planned(arguments)
            return 0, ""
        return cli._COMMANDS[name][0](arguments), capsys.readouterr().err
    except UsageError as error:
        return error.code, f"{error}\n"
    except SystemExit as end:
        return end.code, capsys.readouterr().err


@pytest.mark.parametrize("line, said", [(row[0], row[1:]) for row in HERE], ids=[row[0][:60] for row in HERE])
def test_the_catalogue(line, said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)  # --link mpi would take its srun
    words = shlex.split(line)
    for short, long in STAND_FOR.items():
        words = [word.replace(short, long) for word in words]
    code, text = answer(words, capsys)
    assert code == 125 and text.startswith(f"spcomm {words[0]}") and text.count("\n") == 1, (code, text)
    assert all(part in text for part in said), text


@pytest.mark.parametrize(
    "line, code, said",
    [(line, int(code), said) for line, code, *said in IN_A_PROCESS],
    ids=[row[0][:60] for row in IN_A_PROCESS],
)
def test_in_a_process(launch, line, code, said):
    """One line, but for a module that cannot be imported, whose traceback comes first."""
    for name in ("hello.py", "program.py", "plain", "notes.ipynb", "program.c"):
        launch.script("print('ran')" if name.endswith(".py") else "no program", name)
    (launch.folder / "folder").mkdir()
    (launch.folder / "taken" / "node-0.txt").mkdir(parents=True)
    for name in ("pipe", "pipe.py"):
        os.mkfifo(launch.folder / name)
    result = launch.spcomm(*shlex.split(line))
    assert (result.code, result.out) == (code, "") and result.last.startswith("spcomm"), result
    assert result.err.count("\n") == 1 or "cannot be imported" in result.last, result
    assert all(part in result.last for part in said), result


PARSERS = [parser for name in cli._COMMANDS if (parser := cli.parser_of(name)) is not None] + [
    importlib.import_module(f"spcomm.{name}").parser()
    for name in ("bench.figures_command", *(f"model.{module}" for module, _text in MODELS.values()))
]
OPTIONS = [(parser, option) for parser in PARSERS for option in parser.options]
# Texts are values of these, or are looked at once all words are there; so are those of options that read nothing.
TAKE_ANY = {"-c", "--name", "--what-if", "--html", "--png", "--exercise"}
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


@pytest.mark.parametrize(
    "parser, option", OPTIONS, ids=[f"{parser.prog} {option}" for parser, option in OPTIONS]
)
def test_odd_values(parser, option, capsys, monkeypatch, tmp_path):
    """Each is taken, or refused in one printable line that names the option; no option takes all of them.

    An option without a value takes none, and one that has to have a value is refused without.
    """
    monkeypatch.chdir(tmp_path)
    action = parser.options[option]
    needed = ["ring" for each in parser._actions if each.required and not each.option_strings]
    refused = 0
    for word in [f"{option}={value}" for value in ODD] + [option] * (action.nargs is None):
        code, text = 0, ""
        try:
            if parser.prog == "spcomm run":
                parse([word] if word == option else [word, "x.py"])
            else:
                parser.parse_args([word] if word == option else [word, *needed])
        except UsageError as error:
            code, text = error.code, f"{error}\n"
        except SystemExit as end:
            code, text = end.code, capsys.readouterr().err
        named = any(spelling in text for spelling in action.option_strings)
        assert code == 0 or (code == 125 and named and "\x1b" not in text and text.count("\n") == 1), (
            word[:40], code, text,
        )  # fmt: skip
        assert code or (action.nargs != 0 and word != option), word[:40]
        refused += code != 0 and word != option
    assert refused or option in TAKE_ANY or (action.type in (None, str) and not action.choices)
