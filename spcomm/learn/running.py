# SPDX-License-Identifier: MIT
"""One run of a student's program: its inputs, and its outcome."""

import base64
import binascii
import contextlib
import json
import os
import re
import secrets
import signal
import site
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from spcomm.learn import copying, values
from spcomm.learn.case import Case
from spcomm.learn.catalogue import Exercise, Limits
from spcomm.learn.errors import LearnError
from spcomm.learn.sandbox import FOLDER, Sandbox, python

TRACE = "trace.json"
TRACE_EVENTS = 1 << 17  # of each node
_RESULTS = 16 << 20  # bytes of output that all results may take, beside the program's own output
_GRACE = 10  # seconds that the launcher has to end a run by itself, before the guard does
_PATIENCE = 60.0  # seconds after that for the guard to answer, on the busiest machine
_MOST_TRACE = 256 << 20
_FILE_SIZE = 64 << 20
_MOST_PROGRAM = 16 << 20  # bytes of a student's file
_OPEN_FILES = 512
_PRELOAD = "base64,ctypes,fcntl,importlib.util,inspect,json,resource,spcomm.learn.values"
_MARK = "SPCOMM_JUDGED"
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PYTHONPATH", "TZ")
_LINE = re.compile(rb"\[(\d+)\] (.*)", re.DOTALL)
_RESULT = re.compile(r"([0-9a-f]{32}) (\d{1,6})/(\d{1,6}) ([A-Za-z0-9+/=]*)")


class Cancelled(Exception):
    """A check was ended before it had a result."""


class Cancellation:
    """Ends a check from another thread: its run ends at once, with all processes, and `grade` raises `Cancelled`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requested = False

    def request(self) -> None:
        """Ask the process that is covered to end, or else the next one that would be."""
        with self._lock:
            self._requested = True
            if self._process is not None:
                self._process.terminate()
                self._process.send_signal(signal.SIGCONT)  # without walls a program may have stopped it

    def kill(self) -> None:
        """End a process that does not answer a request; the thread that has started it cleans up."""
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def check(self) -> None:
        """Raise `Cancelled` if the check is to end."""
        if self._requested:
            raise Cancelled

    @contextlib.contextmanager
    def covering(self, process: "subprocess.Popen[bytes]") -> "Iterator[None]":
        """Within it a request ends the process; after it a requested end is raised."""
        with self._lock:
            self._process = process
            if self._requested:
                process.terminate()
        try:
            yield
        finally:
            with self._lock:
                self._process = None
        self.check()


@dataclass
class Run:
    """Result of a run."""

    case: Case
    code: "int | None" = None  # exit code of spcomm run, negative for a signal; None: it was ended
    stopped: "str | None" = None  # the limit that was exceeded, or "guard"
    output: str = ""  # the program's output, without labels
    # Lines of stderr with the node; None: the launcher.
    errors: "list[tuple[int | None, str]]" = field(default_factory=list)
    results: "dict[int, str]" = field(default_factory=dict)  # by rank: JSON of the node program
    doubled: "list[int]" = field(default_factory=list)  # ranks with more than one result
    trace: "bytes | None" = None


def run(
    case: Case, file: Path, exercise: Exercise, seed: int, walls: Sandbox, cancellation: Cancellation
) -> Run:
    """Run a case of an exercise with a student's file. `seed` is that of --perturb."""
    limits = exercise.limits
    with _folder() as name:
        folder = Path(name)
        _copy(file, folder)
        secret = [secrets.token_hex(16) for _ in range(case.nodes)]
        command = walls.command(
            _launch(case, limits, seed),
            {file.name: str(folder / file.name)},
            {TRACE: str(folder / TRACE)},
            str(exercise.folder),
        )
        told = _guarded(command, folder, limits, walls, _lines(case, file, limits, secret), cancellation)
        trace = _trace(folder / TRACE)
    return _understand(case, told, secret, trace)


def _folder() -> "tempfile.TemporaryDirectory[str]":
    try:
        return tempfile.TemporaryDirectory(prefix="spcomm-check-", ignore_cleanup_errors=True)
    except OSError as error:
        raise LearnError(f"a folder for temporary files cannot be made: {error}; set TMPDIR to one") from None


def _copy(file: Path, folder: Path) -> None:
    try:
        text = copying.read(file, _MOST_PROGRAM)
    except OSError as error:
        raise LearnError(f"{file} cannot be read: {error.strerror or error}") from None
    if text is None:
        raise LearnError(f"{file} has more than {_MOST_PROGRAM >> 20} MiB, and no solution needs that")
    try:
        (folder / file.name).write_bytes(text)
        (folder / TRACE).touch()
    except OSError as error:
        raise LearnError(f"{file} cannot be copied to {folder}: {error.strerror or error}") from None


def _launch(case: Case, limits: Limits, seed: int) -> "list[str]":
    words = [python(), "-P", "-m", "spcomm", "run", "-n", str(case.nodes), "-l", "--no-color"]
    words += ["--stdin", "all", "--timeout", f"{limits.seconds:g}", "--grace", "1", "--stall", "0"]
    words += ["--trace", TRACE, "--trace-events", str(TRACE_EVENTS), "--preload", _PRELOAD]
    if case.perturb:
        words += ["--perturb", "--seed", str(seed)]
    return [*words, *case.options, "-m", "spcomm.learn.node"]


def _lines(case: Case, file: Path, limits: Limits, secret: "list[str]") -> bytes:
    """Standard input of the nodes: a line for each."""
    memory = int(limits.memory_mib * 2**20)
    bounds = {
        "RLIMIT_DATA": memory,
        "RLIMIT_FSIZE": _FILE_SIZE,
        "RLIMIT_NOFILE": _OPEN_FILES,
        "RLIMIT_CORE": 0,
    }
    lines = []
    for rank in range(case.nodes):
        try:
            arguments = values.to_text(case.arguments_of(rank))
        except values.ValueProblem as problem:
            raise LearnError(f"check.py: the arguments of case {case.name!r} have {problem}") from None
        about = {"file": file.name, "function": case.function, "arguments": arguments, "limits": bounds}
        lines.append(json.dumps({**about, "secret": secret[rank]}))
    return "\n".join(lines).encode()


def _guarded(
    command: "list[str]",
    folder: Path,
    limits: Limits,
    walls: Sandbox,
    told: bytes,
    cancellation: Cancellation,
) -> "dict[str, object]":
    """Let a guard run the command. Returns its answer."""
    mark = secrets.token_hex(8)
    about = {
        "command": command,
        "folder": str(folder),
        "environment": _environment(folder, walls, mark),
        "limits": {
            "seconds": limits.seconds + _GRACE,
            "memory": limits.memory_mib * 2**20,
            "processes": limits.processes + 8,  # the launcher, the walls, the process that forks nodes
            "output": limits.output_kib * 1024 + _RESULTS,
        },
    }
    guard = [sys.executable, "-I", "-S", str(Path(__file__).with_name("limits.py")), json.dumps(about)]
    done = subprocess.Popen(guard, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with cancellation.covering(done):
        out, err = _answer(done, told, limits.seconds + _GRACE + _PATIENCE, mark)
    try:
        return json.loads(out)
    except ValueError:
        if done.returncode and done.returncode > 0:
            raise LearnError(f"the judge's guard failed: {err.decode(errors='replace')[-2000:]}") from None
        return {"status": None, "stopped": "guard", "out": "", "err": ""}


def _answer(
    done: "subprocess.Popen[bytes]", told: bytes, patience: float, mark: str
) -> "tuple[bytes, bytes]":
    """Tell the guard the inputs. Returns its output, when nothing is left of the run."""
    try:
        return done.communicate(told, patience)
    except subprocess.TimeoutExpired:  # without walls a program can stop it
        done.kill()
        return done.communicate()
    except BaseException:  # as by Ctrl-C: the guard ends the run first
        done.terminate()
        done.stdout.close()  # it may be telling us something long just now
        done.stderr.close()
        done.wait()
        raise
    finally:
        if done.returncode:
            _end_marked(mark)


def _environment(folder: Path, walls: Sandbox, mark: str) -> "dict[str, str]":
    place = FOLDER if walls.bwrap else str(folder)
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    fixed = {
        "HOME": place,
        "TMPDIR": "/tmp" if walls.bwrap else place,
        "PYTHONDONTWRITEBYTECODE": "1",
        _MARK: mark,
    }
    if site.ENABLE_USER_SITE:  # else it would be looked for in that HOME
        fixed["PYTHONUSERBASE"] = site.getuserbase()
    return {**kept, **fixed, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _end_marked(mark: str) -> None:
    """Kill processes that a dead guard's run has left: no longer our descendants, but known by their environment."""
    word = f"{_MARK}={mark}".encode()
    ends = time.monotonic() + _PATIENCE  # a process may not be ours to end
    while time.monotonic() < ends:
        found = [pid for pid in _processes() if word in _surroundings(pid)]
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if not found:
            return


def _processes() -> "list[int]":
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _surroundings(pid: int) -> "list[bytes]":
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _trace(path: Path) -> "bytes | None":
    """Return the trace; None: it is none, or too large. Without walls a program can put anything there, a pipe, too."""
    try:
        return None if path.is_symlink() else copying.read(path, _MOST_TRACE)
    except OSError:
        return None


def _understand(case: Case, told: "dict[str, object]", secret: "list[str]", trace: "bytes | None") -> Run:
    found = _Results(secret)
    for node, text in _labelled(told["out"]):
        found.line(node, text)
    results, doubled = found.end()
    printed = "".join(f"{text}\n" for _node, text in found.printed)
    return Run(
        case, told["status"], told["stopped"], printed, _labelled(told["err"]), results, doubled, trace
    )


def _labelled(data: str) -> "list[tuple[int | None, str]]":
    """Lines with the node that wrote them; None for the launcher."""
    found: list[tuple[int | None, str]] = []
    for line in base64.b64decode(data).split(b"\n"):
        match = _LINE.fullmatch(line)
        rank, text = (int(match[1][:6]), match[2]) if match else (None, line)
        found.append((rank, text.decode("utf-8", "replace")))
    return found[:-1] if found and found[-1] == (None, "") else found


class _Results:
    """Finds the results among the lines of the output."""

    def __init__(self, secret: "list[str]") -> None:
        self._secret = secret
        self._pieces: list[list[tuple[int, int, str]]] = [[] for _ in secret]
        self.printed: list[tuple[int | None, str]] = []

    def line(self, node: "int | None", text: str) -> None:
        match = _RESULT.fullmatch(text)
        if match and node is not None and node < len(self._secret) and match[1] == self._secret[node]:
            self._pieces[node].append((int(match[2]), int(match[3]), match[4]))
            self._forget_blank(node)
        else:
            self.printed.append((node, text))

    def _forget_blank(self, node: int) -> None:
        """Drop the empty line before a result, which ends the program's unfinished line."""
        for at in range(len(self.printed) - 1, -1, -1):
            if self.printed[at][0] == node:
                if self.printed[at][1] == "":
                    del self.printed[at]
                return

    def end(self) -> "tuple[dict[int, str], list[int]]":
        """Return the complete results by rank, and the ranks with more than one."""
        whole, doubled = {}, []
        for rank, pieces in enumerate(self._pieces):
            if [piece[0] for piece in pieces] == list(range(len(pieces))) and {p[1] for p in pieces} == {
                len(pieces)
            }:
                try:
                    whole[rank] = base64.b64decode("".join(piece[2] for piece in pieces)).decode()
                except (binascii.Error, UnicodeDecodeError):
                    pass
            elif sum(piece[0] == 0 for piece in pieces) > 1:
                doubled.append(rank)
        return whole, doubled
