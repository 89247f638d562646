# SPDX-License-Identifier: MIT
"""What the documents say exists: commands, files, links."""

import re
import tomllib

import pytest

from checkout import ROOT, fail_with, files, relative

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "csrc/README.md"]


def existing():
    return [ROOT / name for name in DOCUMENTS if (ROOT / name).exists()]


def test_documents_are_there():
    assert [name for name in DOCUMENTS if not (ROOT / name).is_file()] == []


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    complaints = []
    for path in [*existing(), ROOT / ".ci" / "run", *files(".yml"), *files(".md", below="docs")]:
        for target in re.findall(
            r"(?:^|`|\$ |run: |step \w+ \d+ )make (?:[A-Z]+=\S+ )*([a-z][a-z-]*)",
            path.read_text(),
            re.MULTILINE,
        ):
            if target not in targets:
                complaints.append(f"{relative(path)} says `make {target}`, which the Makefile does not have")
    fail_with(complaints)


@pytest.mark.parametrize("command", ["demo", "test"])
def test_readme_names_the_two_commands(command):
    assert f"make {command}" in (ROOT / "README.md").read_text()


def test_links_lead_somewhere():
    complaints = []
    for path in [*existing(), *files(".md", below="docs")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text()):
            if not (path.parent / target).exists():
                complaints.append(f"{relative(path)} links to {target}")
    fail_with(complaints)


def test_named_files_exist():
    """A path in backquotes that starts with a folder of ours exists, or is a public header; <noun> is any."""
    complaints = []
    for path in [*existing(), *files(".md", below="docs")]:
        names = re.findall(
            r"`((?:csrc|spcomm|tests|examples|scripts|docs|\.ci|\.github)/[^`\s]*)`", path.read_text()
        )
        for name in names:
            pattern = re.sub(r"<[^>]+>|NN", "*", name).rstrip("/")
            if not list(ROOT.glob(pattern)) and not list((ROOT / "csrc" / "include").glob(pattern)):
                complaints.append(f"{relative(path)} names {name}")
    fail_with(complaints)


def test_changelog_has_this_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
