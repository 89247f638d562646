# SPDX-License-Identifier: MIT
"""`spcomm examples`: which there are, the source of one, and copies of all."""

import os
import sys
from argparse import SUPPRESS
from pathlib import Path

from spcomm.argument_parser import ArgumentParser
from spcomm.demo import data_dir, examples_dir
from spcomm.learn import copying, names
from spcomm.learn.errors import LearnError, of_system
from spcomm.learn.names import UsageError
from spcomm.text import printable, summary_of

_ASIDE = {"__pycache__", ".ipynb_checkpoints"}


def parser() -> ArgumentParser:
    """Return the parser of `spcomm examples`."""
    rows = [
        ("list", "number, name and idea of each (default)"),
        ("NAME", "print the source of one: its number, its name or a part of it; first a line with its path"),
        ("init DIR", "copy all of them to DIR, with those in C and C++, the notebooks and the programs of the "
         "tutorial; existing files are not overwritten"),
    ]  # fmt: skip
    made = ArgumentParser(
        "spcomm examples",
        "spcomm examples [list]\nspcomm examples NAME\nspcomm examples init DIR",
        "Programs of fewer than 60 lines, one idea each.",
        completed=_completed,
    )
    made.sections.append(("", rows))
    made.add_argument("name", nargs="?", default="list", help=SUPPRESS)
    made.add_argument("folder", nargs="?", help=SUPPRESS)
    return made


def _completed(before: "list[str]") -> "str | list[tuple[str, str]]":
    if before:
        return "FOLDER" if before == ["init"] else []
    commands = [("list", "number, name and idea of each"), ("init", "copy all of them to a folder")]
    return commands + [(path.stem, summary_of(path)) for path in programs()]


def main(words: "list[str]") -> int:
    """Run `spcomm examples`; returns the exit code: 1 for an error, 125 for a wrong command line."""
    asked = parser().parse_args(words)
    try:
        _run(asked.name, asked.folder)
    except (LearnError, FileNotFoundError) as error:
        print(f"spcomm examples: {printable(str(error))}", file=sys.stderr)
        return 125 if isinstance(error, UsageError) else 1
    except OSError as error:
        if error.filename is None:
            raise
        print(f"spcomm examples: {of_system(error)}", file=sys.stderr)
        return 1
    return 0


def _run(name: str, folder: "str | None") -> None:
    if name == "init":
        if folder is None:
            raise UsageError("init needs one folder to copy to, as in `spcomm examples init my-examples`")
        _copy(Path(folder))
    elif folder is not None:
        raise UsageError(f"give one example, not {name} {folder}")
    elif name == "list":
        _list()
    else:
        _show(name)


def programs() -> "list[Path]":
    """The examples in Python, by number; those without one come last."""
    found = [path for path in examples_dir().glob("*.py") if path.name != "picture.py"]  # that is a module
    return sorted(found, key=lambda path: (not path.name[0].isdigit(), path.name))


def _list() -> None:
    found = programs()
    width = max(len(path.stem) for path in found)
    for path in found:
        print(f"{path.stem:<{width}}  {summary_of(path)}")
    print("\n`spcomm examples NAME` prints one, `spcomm examples init DIR` copies all of them to DIR.")


def _show(word: str) -> None:
    found = {path.stem: path for path in programs()}
    path = found[names.chosen(word, list(found), "example", "spcomm examples")]
    print(f"# {path}\n")
    print(path.read_text(encoding="utf-8"), end="")


def _copy(folder: Path) -> None:
    origin = examples_dir()
    files = {}
    for path in sorted(origin.rglob("*")):
        if path.is_file() and not _ASIDE & set(path.parts) and path.suffix != ".pyc":
            files[str(path.relative_to(origin))] = path.read_bytes()
    tutorial = data_dir("docs", "tutorial/index.md") / "tutorial" / "listings"
    for path in sorted(tutorial.glob("*.py")):
        files[f"tutorial/{path.name}"] = path.read_bytes()
    copied = copying.write(folder, files)
    if not copied:
        print(f"all {len(files)} files are in {folder} already")
        return
    print(
        f"{len(copied)} files copied to {folder}; next: spcomm run -n 4 {os.path.join(folder, '01_hello.py')}"
    )
