# SPDX-License-Identifier: MIT
"""The table of mutants (mutants.toml) fits the tree, and their script survives an entry that does not."""

import importlib
import importlib.util
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())


def test_entries_are_complete():
    for mutant in MUTANTS.values():
        assert set(mutant) == {"why", "pattern", "replacement", "tests"} and mutant["tests"]
        assert mutant["pattern"] != mutant["replacement"]


def test_each_pattern_stands_in_one_place():
    suffixes = {".c", ".h", ".hpp", ".pyx", ".pxd", ".py"}
    paths = [path for folder in ("csrc", "spcomm", "scripts") for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text() for path in paths if path.suffix in suffixes]
    counts = {name: sum(text.count(one["pattern"]) for text in texts) for name, one in MUTANTS.items()}
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_their_tests_are_there():
    for name, mutant in MUTANTS.items():
        for arguments in mutant["tests"]:
            assert (ROOT / arguments.split()[0].partition("::")[0]).is_file(), name


def test_they_are_near_the_file_that_they_change(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import near

    rows = near.table()
    for path in near.subprocess.check_output(["git", "ls-files", *near.FOLDERS], cwd=ROOT, text=True).split():
        text = (ROOT / path).read_text() if Path(path).suffix in near.SOURCES else ""
        named = {tests for one in MUTANTS.values() if one["pattern"] in text for tests in one["tests"]}
        assert not named or named <= set(near.nearest(path, rows)), path


def test_generated_ones_change_a_line_of_code_and_are_the_same_in_every_run(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    script = importlib.import_module("generated-mutants")
    found = script.all_of(["csrc/base", "spcomm/text.py"])
    assert found == script.all_of(["csrc/base", "spcomm/text.py"]) and len(found) > 100
    for mutant in found:
        assert (
            (ROOT / mutant["file"]).read_text().splitlines()[mutant["line"]] == mutant["from"] != mutant["to"]
        )
    assert [one["from"] for one in found if one["from"].lstrip().startswith(("/*", "#", '"""'))] == []


SMALL_TREE = {
    "setup.py": "",
    "spcomm/__init__.py": "",
    "spcomm/one.py": "ONE = 1\n",
    "test_one.py": "from spcomm.one import ONE\n\n\ndef test_one():\n    assert ONE == 1\n",
    "test_none.py": "",
    "mutants.toml": "\n".join(
        f"""[{name}]
pattern = "ONE = 1"
replacement = "ONE = 1 + 1"
tests = ["{tests}"]
"""
        for name, tests in [
            ("absent", "test_absent.py"),
            ("empty", "test_none.py"),
            ("no-such-case", "test_one.py::test_two"),
            ("good", "test_one.py"),
            ("parallel", "test_one.py -n 2"),
        ]
    ),
}


@pytest.mark.slow
def test_an_entry_that_names_no_test_is_told_and_the_next_one_runs(tmp_path, monkeypatch, capsys):
    for name, text in SMALL_TREE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    spec = importlib.util.spec_from_file_location("mutants_script", ROOT / "scripts" / "mutants.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "COPY", tmp_path / "build" / "mutants")
    monkeypatch.setattr(script, "TABLE", tmp_path / "mutants.toml")
    assert script.main([])
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.partition(" s  ")[2] for line in lines] == [
        "UNUSABLE: pytest test_absent.py finds no test (status 4)",
        "UNUSABLE: pytest test_none.py finds no test (status 5)",
        "UNUSABLE: pytest test_one.py::test_two finds no test (status 4)",
        "caught",
        "caught",
    ]
    assert last == "2 of 5 mutants are caught"
    (tmp_path / "setup.py").write_text("raise SystemExit('no compiler')")
    with pytest.raises(SystemExit, match="without any mutant, it does not compile:\nno compiler"):
        script.main([])
