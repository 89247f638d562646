# SPDX-License-Identifier: MIT
"""`spcomm trace`: its options, its files, and what it says of mistakes."""

import subprocess
import sys

import pytest

from builder import two_nodes
from spcomm.trace import command
from spcomm.trace.command import main


@pytest.fixture
def trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    two_nodes().write(tmp_path)
    return tmp_path


@pytest.mark.smoke
def test_the_command(trace):
    words = [sys.executable, "-m", "spcomm", "trace", "t.json"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("heat.py: 2 nodes, 100 µs\n") and "hottest line" in result.stdout


def code_of(words):
    """The code with which the command ends the process."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code


def test_it_imports_nothing_heavy(trace):
    code = (
        "import sys; from spcomm.trace.command import main; main(['t.json', '--matrix', '--html']); "
        "print([name for name in ('numpy', 'matplotlib', 'spcomm._core') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.stdout.endswith("[]\n"), result


def test_help_names_all_options(capsys):
    assert code_of(["--help"]) == 0
    text = capsys.readouterr().out
    known = command.parser().options
    assert "--virtual" in known and "--png" in known
    for word in known:
        assert f"  {word}" in text


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["t.json", "--html"], "t.html"),
        (["--html", "t.json"], "t.html"),
        (["t.json", "--html", "o.html"], "o.html"),
        (["--html", "o.html", "t.json"], "o.html"),
        (["t.json", "--html=page"], "page"),
    ],
)
def test_where_outputs_go(trace, words, made, capsys):
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"spcomm trace: wrote {made}\n")
    assert sorted(path.name for path in trace.iterdir()) == sorted(["t.json", made])


def test_texts_and_parts(trace, capsys):
    assert main(["t.json", "--summary", "--matrix", "--from", "20us", "--to=8e-5", "--min-bytes", "900"]) == 0
    out = capsys.readouterr().out
    assert out.count("60.0 µs, from 2e-05 s to 8e-05 s, messages from 900 B on") == 2
    assert out.endswith("\n\nno messages\n")


def test_to_after_the_end_is_the_end(trace, capsys):
    assert main(["t.json", "--to", "5"]) == 0
    assert capsys.readouterr().out.startswith("heat.py: 2 nodes, 100 µs\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.json"], "cannot read none.json: No such file"),
        (["\x1b[2J"], "cannot read \ufffd[2J: No such file"),
        (["/dev/zero"], "/dev/zero is a device, not a trace"),
        (["t.json", "--from", "1"], "--from 1 is after the end: t.json has 0.0001 seconds"),
        (["t.json", "--from", "5e-5", "--to", "5e-5"], "--to 5e-05 is not after --from 5e-05"),
        (["t.json", "--to", "0"], "--to 0 is not after --from 0"),
        (["t.json", "--html=no/such/folder.html"], "cannot write no/such/folder.html: No such file"),
        (["t.json", "--html=t.json"], "--html would overwrite the trace t.json"),
    ],
)
def test_what_cannot_be_shown(trace, words, said, capsys):
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"spcomm trace: {said}") and err.count("\n") == 1, err
    assert (trace / "t.json").read_text() == two_nodes().text()
