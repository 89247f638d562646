# SPDX-License-Identifier: MIT
"""Help and completion: both from the parser of each command."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time

import pytest

from processes import WATCHDOG_S, spcomm_root
from spcomm import cli, completion
from spcomm.argument_parser import row_of
from spcomm.launch.cmdline import table

COMMANDS = [name for name in cli.summaries() if cli.parser_of(name) is not None]


def words(line):
    found = completion.complete(line.split(" "))
    return found if isinstance(found, str) else [word for word, _text in found]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help_that_fits(name):
    text = cli.parser_of(name).format_help()
    assert text.startswith(f"usage: spcomm {name}")
    assert max(map(len, text.splitlines())) <= 100


def test_every_command_but_two_has_one():
    assert set(cli.summaries()) - set(COMMANDS) == {"help", "version"}


def test_the_short_help_of_run_has_about_fifteen_lines():
    short = table.parser().short_help().splitlines()
    assert 10 < len(short) <= 16 and max(map(len, short)) <= 100
    shown = [line.split()[0].strip(",").partition("[")[0] for line in short if line.startswith("  -")]
    assert sorted(shown) == sorted(table.MOST_USED)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("-n", "-n N, -np N"),
        ("-l", "-l, --label, --no-label"),
        ("--map", "--map block|cyclic|BOX,BOX,…"),
        ("--stats", "--stats[=all]"),
        ("--debug", "--debug[=RANKS]"),
        ("-x", "-x VAR[=VALUE]"),
    ],
)
def test_how_help_shows_an_option(name, label):
    assert row_of(table.parser().options[name])[0] == label


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", list(cli.summaries())),
        ("ru", ["run"]),
        ("run --tim", ["--timeout"]),
        ("run --map ", ["block", "cyclic"]),
        ("run --map=c", ["--map=cyclic"]),
        ("run --map c", ["cyclic"]),
        ("run -n ", []),
        ("run -n 4 ", "FILE"),
        ("run -n4 --env=all --start e", ["exec"]),
        ("run --trace ", "FILE"),
        ("run --output=", "FOLDER"),
        ("run --show ", ["all", "none"]),
        ("run --debug=p", []),
        ("run --debug ", "FILE"),
        ("run x.py --tim", "FILE"),
        ("run -m module --tim", "FILE"),
        ("run -- ", "FILE"),
        ("run -n 2 a.py : --tim", ["--timeout"]),
        ("serve --max", ["--max-members"]),
        ("check --walls ", ["any", "required"]),
        ("check -j", ["-j"]),
        ("check 1.py ", "FILE"),
        ("trace t.json --html=", "FILE"),
        ("trace --ht", ["--html"]),
        ("learn so", ["solution"]),
        ("learn init ", "FOLDER"),
        ("learn check 0", [f"0{number}" for number in range(1, 10)]),
        ("learn list ", []),
        ("examples 01", ["01_hello"]),
        ("examples init ", "FOLDER"),
        ("docs howto/ro", ["howto/room"]),
        ("docs --b", ["--browser"]),
        ("explain SP10", [f"SP10{number}" for number in range(1, 9)]),
        ("explain SP101 ", []),
        ("bench pi", ["pingpong"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("help run ", []),
        ("version ", []),
        ("frobnicate ", []),
    ],
)
def test_what_may_stand_there(line, found):
    assert words(line) == found


@pytest.mark.parametrize("given", [["--words"], ["--words", "bash"]])
def test_without_a_word_every_command_is_offered(given, capsys):
    assert completion.main(given) == 0
    assert set(cli.summaries()) <= {line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()}


def test_names_of_variables(monkeypatch):
    monkeypatch.setenv("SPCOMM_OF_A_TEST", "1")
    assert words("run -x SPCOMM_OF_A") == ["SPCOMM_OF_A_TEST"]


def test_every_option_of_run_is_offered():
    assert set(table.parser().options) <= set(words("run -"))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["run", "--map", "=", "c"], ["run", "--map=c"]),
        (["run", "--map", "="], ["run", "--map="]),
        (["run", "-x", "A", "=", "b"], ["run", "-x", "A", "=", "b"]),
        (["run", "--map", "=", "block", "--env"], ["run", "--map=block", "--env"]),
    ],
)
def test_what_bash_has_divided(given, found):
    assert completion._joined(given) == found


@pytest.fixture
def shell(tmp_path):
    """A folder with one file and one folder, and the environment of a shell in which `spcomm` is this one."""
    folder = tmp_path / "here"
    (folder / "results").mkdir(parents=True)
    (folder / "heat.py").touch()
    command = tmp_path / "bin" / "spcomm"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{spcomm_root()}" exec "{sys.executable}" -m spcomm "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    return folder, {**os.environ, **home, "PATH": path, "TERM": "dumb", "PS1": "> "}


def typed(start, setup, lines, folder, environment):
    """The text on a shell's terminal after each line with a tab at its end; its answer is awaited."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(start[0], start, environment)
    try:
        read(terminal, None, f"{setup}; echo rea''dy\n", "ready")
        return [read(terminal, "\x15", f"{line}\t", wanted) for line, wanted in lines]
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def read(terminal, before, line, wanted):
    os.write(terminal, ((before or "") + line).encode())
    found, ends = "", time.monotonic() + WATCHDOG_S
    while wanted not in found and time.monotonic() < ends:
        if select.select([terminal], [], [], 0.1)[0]:
            found += os.read(terminal, 4096).decode(errors="replace")
    assert wanted in found, found
    return found


LINES = [
    ("spcomm run --tim", "--timeout "),
    ("spcomm run --map=cyc", "--map=cyclic"),
    ("spcomm run -n 4 hea", "heat.py"),
    ("spcomm run --output re", "results/"),
    ("spcomm explain SP101 ; spcomm ver", "version "),
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash(shell):
    typed(["bash", "--norc", "--noprofile", "-i"], 'eval "$(spcomm completion bash)"', LINES, *shell)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh(shell):
    setup = 'autoload -U compinit; compinit -D -u; eval "$(spcomm completion zsh)"'
    typed(["zsh", "-f", "-i"], setup, LINES, *shell)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish(shell):
    folder, environment = shell
    for line, wanted in LINES:
        command = f"spcomm completion fish | source; complete -C '{line}'"
        done = subprocess.run(
            ["fish", "-c", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=WATCHDOG_S,
        )
        assert wanted.strip() in [
            each.partition("\t")[0].rpartition(" ")[2] for each in done.stdout.splitlines()
        ], done
