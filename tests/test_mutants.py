# SPDX-License-Identifier: MIT
"""The table of mutants (mutants.toml) fits the tree. `make mutants` runs them."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())["mutant"]


def test_names_are_unique_and_entries_complete():
    assert len({mutant["name"] for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        assert set(mutant) == {"name", "why", "pattern", "replacement", "tests"} and mutant["tests"]
        assert mutant["pattern"] != mutant["replacement"]


def test_each_pattern_stands_in_one_place():
    suffixes = {".c", ".h", ".hpp", ".pyx", ".pxd", ".py"}
    paths = [path for folder in ("csrc", "spcomm") for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text() for path in paths if path.suffix in suffixes]
    counts = {mutant["name"]: sum(text.count(mutant["pattern"]) for text in texts) for mutant in MUTANTS}
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_their_tests_are_there():
    for mutant in MUTANTS:
        for arguments in mutant["tests"]:
            assert (ROOT / arguments.split()[0].partition("::")[0]).is_file(), mutant["name"]
