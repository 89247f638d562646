# SPDX-License-Identifier: MIT
"""mpi4py's own tests on spcomm's MPI library: `make mpi-suite`, or mpi4py-tests.py [OPTION ...] [FILE ...]

The source package of the mpi4py that is installed comes into build/mpi4py. Each of its test files (p2p_buf stands for
test_p2p_buf.py; `all` for every file) is a run of its own. tests/mpi/mpi4py.txt lists the tests that do not pass, with
reasons. Another test that fails is an error, and so is a test of the list that passes.
"""

import argparse
import contextlib
import fnmatch
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MADE = ROOT / "build" / "mpi4py"
EXCEPTIONS = ROOT / "tests" / "mpi" / "mpi4py.txt"
NODE = ROOT / "scripts" / "mpi4py-node.py"
# Messages and collectives: these pass without an exception.
QUICK = """cco_obj cco_buf cco_vec cco_nb_buf cco_nb_vec cco_pr_buf cco_pr_vec cco_ngh_obj cco_ngh_buf
    p2p_obj p2p_buf p2p_obj_matched p2p_buf_matched""".split()
# From good to bad: a test's outcome is the worst that a node had.
OUTCOMES = ("skipped", "passed", "failed", "error", "not reached", "did not end")
GOOD = ("skipped", "passed")
COLUMNS = ("ran", "failed", "errors", "skipped", "did not end")
NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectTimeout|NameResolution|Name or service|unreachable|ProxyError"
)


# ---- the source package


def source(version):
    """The folder of the tests; None if the package cannot be reached."""
    folder = MADE / f"mpi4py-{version}"
    if (folder / "test").is_dir():
        return folder / "test"
    MADE.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-binary", "mpi4py", "--dest", MADE, f"mpi4py=={version}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stdout + done.stderr
        if NO_NETWORK.search(said):
            return None
        raise SystemExit(f"pip download failed:\n{said}")
    with tarfile.open(*MADE.glob(f"mpi4py-{version}.tar.gz")) as package:
        filters = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # none before 3.11.4
        package.extractall(MADE, **filters)
    return folder / "test"


# ---- the list of exceptions


@dataclass
class Known:
    """A line of the list: `test_io.TestIO*  n=1,2 boxes  reason`."""

    pattern: str
    nodes: tuple[int, ...]  # none: any number
    boxes: bool | None  # None: with boxes and without
    reason: str

    def concerns(self, nodes, boxes):
        return (not self.nodes or nodes in self.nodes) and self.boxes in (None, boxes > 1)

    def names(self, test):
        return fnmatch.fnmatchcase(test, self.pattern)


def read_exceptions(path):
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, where, reason = re.split(r"\s{2,}", line, maxsplit=2)
            words = where.split()
            nodes = [int(n) for word in words if word.startswith("n=") for n in word[2:].split(",")]
            boxes = True if "boxes" in words else False if "one box" in where else None
            yield Known(pattern, tuple(nodes), boxes, reason)


# ---- a file of tests


def command_of(options, folder, module):
    words = [str(NODE), str(folder), module]
    if options.mpiexec:
        return [*shlex.split(options.mpiexec), "-n", str(options.n), options.python, *words]
    boxes = ["--boxes", str(options.boxes)] if options.boxes > 1 else []
    return [sys.executable, "-m", "spcomm", "run", "-n", str(options.n), *boxes, *words]


def environment():
    """Without the variables that the user has set. Tests of MPI_Comm_spawn, which is left out, are skipped."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MPI4PY_", "SPCOMM_"))}
    return {**kept, "MPI4PY_TEST_SPAWN": "no"}


def run(command, seconds, folder, output):
    """The exit status; None if the time was over. All that it started is stopped then."""
    with output.open("w") as file:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:  # also after Ctrl-C
            for number in (signal.SIGTERM, signal.SIGKILL):
                if process.poll() is None:
                    os.killpg(process.pid, number)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(10)


def results(options, tests, name):
    """({test: outcome}, {test: text}, seconds) of a file."""
    folder = MADE / ("other" if options.mpiexec else "spcomm") / f"n{options.n}-boxes{options.boxes}" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    start = time.monotonic()
    status = run(command_of(options, folder, f"test_{name}"), options.limit, tests, folder / "output.txt")
    seconds = time.monotonic() - start
    outcomes, texts = {}, {}
    for rank in range(options.n):
        path = folder / f"{rank}.jsonl"
        for test, outcome in node_results(path.read_text() if path.exists() else "", texts).items():
            outcomes[test] = worse(outcome, outcomes.get(test, outcome))
    if status != 0 and "did not end" not in outcomes.values():
        outcomes[f"test_{name}"] = "did not end"
        texts[f"test_{name}"] = f"exit status {status}, {folder / 'output.txt'}"
    return outcomes, texts, seconds


def node_results(log, texts):
    """{test: outcome} of a node's log; texts of skipped and failed tests go into `texts`."""
    found, begun, is_complete = {}, [], False
    for line in log.splitlines():
        try:
            test, outcome, text = json.loads(line)
        except ValueError:
            break  # the node was killed while it wrote
        if outcome == "all":
            found = dict.fromkeys(text)
        elif outcome == "begun":
            begun.append(test)
        elif outcome == "end":
            is_complete = True
        else:
            found[test] = worse(outcome, found.get(test) or outcome)
            texts.setdefault(test, text)
    for test, outcome in found.items():
        if outcome is None:
            # A class that is skipped as a whole has one entry in place of its tests.
            found[test] = "skipped" if is_complete else "did not end" if test in begun else "not reached"
    return found


def worse(*outcomes):
    return max(outcomes, key=OUTCOMES.index)


# ---- all of them


def row(outcomes):
    counts = Counter(outcomes.values())
    ran = sum(counts[name] for name in ("passed", "failed", "error"))
    return (
        ran,
        counts["failed"],
        counts["error"],
        counts["skipped"],
        counts["did not end"] + counts["not reached"],
    )


def complaints(outcomes, texts, known):
    """Yields what differs from the list; `known` are its lines that concern this run."""
    for test, outcome in outcomes.items():
        if outcome not in GOOD and not any(line.names(test) for line in known):
            yield f"{outcome}: {test}\n{texts.get(test, '').rstrip()}"
    for line in known:
        found = {test: outcome for test, outcome in outcomes.items() if line.names(test)}
        if not found:
            yield f"there is no such test: {line.pattern}"
        elif all(outcome == "skipped" for outcome in found.values()):
            yield f"skipped, although it is listed: {line.pattern}"
        for test, outcome in found.items():
            if outcome == "passed":
                yield f"passed, although it is listed: {test}"


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("-n", type=int, default=3, help="nodes")
    parser.add_argument("--boxes", type=int, default=1)
    parser.add_argument("--limit", type=float, default=400, help="seconds for each file")
    parser.add_argument("--tests", type=Path, help="a folder of test files, in place of mpi4py's")
    parser.add_argument("--exceptions", type=Path, default=EXCEPTIONS)
    parser.add_argument(
        "--mpiexec", help="another MPI's command: shows what passes there, and compares nothing"
    )
    parser.add_argument(
        "--python", default=sys.executable, help="for --mpiexec: an interpreter that has mpi4py"
    )
    parser.add_argument(
        "files", nargs="*", help="by default those of messages and collectives; all: every file"
    )
    return parser.parse_args()


def main():
    options = arguments()
    tests = options.tests or source(metadata.version("mpi4py"))
    if tests is None:
        print("skipped: mpi4py's source package is not here, and the registry of packages cannot be reached")
        return 0
    files = options.files or QUICK
    if "all" in files:
        files = sorted(path.stem.removeprefix("test_") for path in tests.glob("test_*.py"))
    known = [line for line in read_exceptions(options.exceptions) if line.concerns(options.n, options.boxes)]
    total, wrong = Counter(), []
    print(f"{f'n = {options.n}':20}" + "".join(f"{name:>12}" for name in (*COLUMNS, "seconds")))
    for name in files:
        outcomes, texts, seconds = results(options, tests, name)
        numbers = row(outcomes)
        total.update(dict(zip(COLUMNS, numbers, strict=True)))
        print(f"{name:20}" + "".join(f"{number:12}" for number in numbers) + f"{seconds:12.1f}", flush=True)
        mine = [line for line in known if line.pattern.split(".")[0] == f"test_{name}"]
        for complaint in complaints(outcomes, texts, [] if options.mpiexec else mine):
            wrong.append(complaint)
            print(f"  {complaint.splitlines()[0]}", flush=True)
    print(f"{'':20}" + "".join(f"{total[name]:12}" for name in COLUMNS))
    if options.mpiexec:
        return 0
    print(*wrong, sep="\n\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
