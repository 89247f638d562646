# SPDX-License-Identifier: MIT
"""`spcomm demo`: three example programs on real input, each checked against a computation on one node."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from spcomm.argument_parser import ArgumentParser, whole

NODES = 8
MOST_NODES = 64  # the most that the examples' inputs allow


def examples_dir() -> Path:
    """Return the folder of the example programs: of the installed package, or of the checkout.

    Raises
    ------
    FileNotFoundError
        Neither of them exists.
    """
    return data_dir("examples", "01_hello.py")


def data_dir(name: str, member: str) -> Path:
    """Return a folder of files that come with spcomm, of which `member` is one: of the package, or of the checkout.

    Raises
    ------
    FileNotFoundError
        Neither of them exists.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "data" / name, package.parent / name):
        if (folder / member).exists():
            return folder
    problem = f"no {name} in {package / 'data'}: this installation of spcomm is incomplete; reinstall it"
    raise FileNotFoundError(problem)


def programs(files: Sequence[str]) -> list[tuple[str, str, list[str]]]:
    """Return the demonstrations: title, file, arguments."""
    return [
        ("The words of some text files", "07_word_count.py", [os.path.abspath(file) for file in files]),
        ("Heat on a plate, with a picture", "09_heat_plate.py", ["1000", "heat.png"]),
        ("π, by adding up strips", "03_pi.py", ["100000000"]),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `spcomm demo`. Return 0, or the exit code of the first example that failed."""
    options = parser().parse_args(arguments)
    try:
        folder = examples_dir()
    except FileNotFoundError as error:
        print(f"spcomm demo: {error}", file=sys.stderr)
        return 125
    try:
        os.getcwd()  # one program writes a picture there
    except FileNotFoundError:
        print(
            "spcomm demo: the current folder does not exist any more; cd to another one",
            file=sys.stderr,
        )
        return 125
    chosen = programs(options.files)
    print(f"{len(chosen)} programs, each on {options.n} nodes of this machine. They are in {shorter(folder)}")
    cores = os.cpu_count() or 1
    if cores < options.n:
        print(
            f"{options.n} nodes take turns on {cores} cores, so a program may be slower on them than on one"
        )
    failures = {}
    for title, name, words in chosen:
        code = run(title, folder / name, options.n, words)
        if code:
            failures[name] = code
    print()
    if failures:
        print(
            "failed: " + ", ".join(f"{name} (exit code {code})" for name, code in failures.items()),
            flush=True,
        )
        return next(iter(failures.values()))
    print(f"all {len(chosen)} checked. Next: {command()} run -n 4 {shorter(folder / '01_hello.py')}")
    return 0


def run(title: str, path: Path, nodes: int, words: Sequence[str]) -> int:
    """Run one example and print its command, so that it can be typed again."""
    options = ["run", "-n", str(nodes), "--no-label", str(path), *words]
    shown = " ".join([command(), "run", "-n", str(nodes), shorter(path), *map(shorter, words)])
    print(f"\n── {title}\n   {shown}\n", flush=True)
    begin = perf_counter()
    code = subprocess.run([*launcher(), *options]).returncode
    print(f"({perf_counter() - begin:.2f} s from start to finish)", flush=True)
    return code if code >= 0 else 128 - code


def launcher() -> list[str]:
    """Return the words that start this installation's ``spcomm``; with `-m` Python finds the folder here first."""
    script = Path(sys.executable).with_name("spcomm")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "spcomm"]


def command() -> str:
    """Return the command for this installation's ``spcomm``: its path, unless the shell finds it by its name."""
    script = Path(sys.executable).with_name("spcomm")
    if shutil.which("spcomm") == str(script):
        return "spcomm"
    return shorter(script) if script.is_file() else f"{shorter(sys.executable)} -m spcomm"


def shorter(path: str | Path) -> str:
    """Return the path from here, when that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def parser() -> ArgumentParser:
    result = ArgumentParser(
        "spcomm demo",
        "spcomm demo [-n N] [FILE...]",
        "Runs three example programs; each checks itself against one node.",
        completed="FILE",
    )
    result.add_rows(("-n", "N", whole(1, MOST_NODES, "nodes"), f"number of nodes (default: {NODES})"))
    result.set_defaults(n=NODES)
    result.add_argument(
        "files", nargs="*", metavar="FILE", help="texts to count the words of (default: own documents)"
    )
    return result


if __name__ == "__main__":
    sys.exit(main())
