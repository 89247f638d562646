# SPDX-License-Identifier: MIT
"""Mutation testing: breaks the product in one place at a time, and demands that the tests named for it fail.

    make mutants                      all of them
    make mutants ARGS="NAME ..."      those whose names contain one of these words

tests/mutants.toml is the table. The pattern of a mutant stands literally in exactly one place below csrc/, spcomm/
and scripts/; if it stands in none or in several, that is a failure, as is a mutant that survives, or one whose tests
are not there. Mutants are made in a copy of the checkout and of what is built there (build/mutants), never in the
checkout itself.
"""

import contextlib
import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "mutants"
TABLE = ROOT / "tests" / "mutants.toml"
LIMIT_S = 300  # for the tests of one mutant; a hang counts as a failure of the tests
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", "mutants", "extensions", "html", "doctrees", "dist", "__pycache__", "*.lock"
)
FOLDERS = ("csrc", "spcomm", "scripts")
SOURCES = {".c", ".h", ".hpp", ".pyx", ".pxd", ".py"}


class Unusable(Exception):
    """An entry of the table from which nothing follows about the tests; the text says why."""


def environment():
    """Python imports the copy in place of the checkout, and a hang is noticed early."""
    flags = Path(sys.prefix, "stamps", "cppflags")
    cppflags = f"{flags.read_text().strip() if flags.exists() else ''} {os.environ.get('CPPFLAGS', '')}"
    return {
        **os.environ, "PYTHONPATH": str(COPY), "CPPFLAGS": cppflags.strip(),
        "CHECK_TIMEOUT": "30", "SPCOMM_TEST_WATCHDOG": "20",
    }  # fmt: skip


def run(command, seconds):
    """(exit status, output); the status is None if it was stopped because its time was over."""
    process = subprocess.Popen(
        command, cwd=COPY, env=environment(), start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    status = None
    for number, patience in [(None, seconds), (signal.SIGINT, 20), (signal.SIGKILL, None)]:
        if number:
            os.killpg(process.pid, number)
        try:
            output, _ = process.communicate(timeout=patience)
            return (None if number else process.returncode), output
        except subprocess.TimeoutExpired:
            pass
    return status, output


def build():
    status, output = run([sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"], 600)
    if status != 0:
        raise Unusable(f"it does not compile:\n{output[-3000:]}")


def tests_fail(tests):
    """Whether one of these tests fails; each is what pytest gets on its command line."""
    for arguments in tests:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--timeout=90"]
        command += ["-m", "slow or not slow"]  # unless the entry says otherwise
        status, output = run([*command, *shlex.split(arguments)], LIMIT_S)
        if status == 2 and "stopping after 1 failures" in output:
            return True  # so -x ends where pytest-xdist runs the tests
        if status in (4, 5):
            raise Unusable(f"pytest {arguments} finds no test (status {status})")
        if status in (2, 3):
            raise Unusable(f"pytest {arguments}: status {status}, so nothing was tested\n{output[-2000:]}")
        if status != 0:
            return True
    return False


def place(pattern):
    """The only file of the copy in which the pattern stands, once."""
    found = []
    for path in sorted(path for folder in FOLDERS for path in (COPY / folder).rglob("*")):
        if path.suffix in SOURCES and path.is_file():
            found += [path] * path.read_text().count(pattern)
    if len(found) != 1:
        names = ", ".join(str(path.relative_to(COPY)) for path in found)
        raise Unusable(f"its pattern stands in {len(found)} places{': ' if names else ''}{names}")
    return found[0]


def unsound(mutants):
    """The tests that prove nothing, for they fail without any mutant or name no test: {arguments: why}."""
    found = {}
    for arguments in {arguments for mutant in mutants for arguments in mutant["tests"]}:
        try:
            if tests_fail([arguments]):
                found[arguments] = f"pytest {arguments} fails without it"
        except Unusable as problem:
            found[arguments] = str(problem)
    return found


def verdict(mutant, broken):
    """The word printed for a mutant. Its text is restored; the next mutant's build compiles that file again, too."""
    try:
        for arguments in mutant["tests"]:
            if arguments in broken:
                raise Unusable(broken[arguments])
        path = place(mutant["pattern"])
        text = path.read_text()
        try:
            path.write_text(text.replace(mutant["pattern"], mutant["replacement"]))
            build()
            return "caught" if tests_fail(mutant["tests"]) else "SURVIVED"
        finally:
            path.write_text(text)
    except Unusable as problem:
        return f"UNUSABLE: {problem}"


@contextlib.contextmanager
def copied():
    """Copy the checkout and what is built there, and build it; nobody else may do so meanwhile."""
    COPY.parent.mkdir(exist_ok=True)
    with open(COPY.parent / "mutants.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("another run of this script uses build/mutants; wait until it has ended")
        shutil.rmtree(COPY, ignore_errors=True)
        shutil.copytree(ROOT, COPY, symlinks=True, ignore=NOT_COPIED)
        try:
            build()
        except Unusable as problem:
            sys.exit(f"without any mutant, {problem}")
        yield


def main(words):
    mutants = tomllib.loads(TABLE.read_text())
    chosen = {name: mutants[name] for name in mutants if not words or any(word in name for word in words)}
    if not chosen:
        sys.exit(f"no mutant is named so: {' '.join(words)}; {TABLE.relative_to(ROOT)} has {len(mutants)}")
    with copied():
        return judge(chosen)


def judge(chosen):
    """Print a verdict on each of these mutants; returns whether one is not caught."""
    broken, wrong = unsound(chosen.values()), 0
    for name, mutant in chosen.items():
        start = time.monotonic()
        answer = verdict(mutant, broken)
        wrong += answer != "caught"
        print(f"{name:44} {time.monotonic() - start:5.0f} s  {answer}", flush=True)
    print(f"{len(chosen) - wrong} of {len(chosen)} mutants are caught")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
