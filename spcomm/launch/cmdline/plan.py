# SPDX-License-Identifier: MIT
"""Plan of a start: finds the program as a shell and Python would, and decides how its nodes start."""

import os
import sys

from spcomm import mpi
from spcomm.launch.base import source
from spcomm.launch.base.process import interpreter_flags
from spcomm.launch.base.record import dataclass, field, replace
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.environment import environments
from spcomm.launch.cmdline.options import Options, Part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from spcomm.launch.remote.hosts import Host


STDIN = "-"  # the program is the standard input
_TEXTS = (".ipynb", ".md", ".txt", ".rst", ".json", ".csv")
_SOURCES = (".c", ".cc", ".cpp", ".cxx")


@dataclass(frozen=True, eq=False)
class Plan:
    """One program, ready to be started `nodes` times; its nodes, once they are placed."""

    kind: str  # how a forked process runs it: see `child.Program`
    target: str
    arguments: "list[str]"  # sys.argv, or argv of an executable
    path_entry: str | None = None  # sys.path[0]; None: Python was asked to leave it out
    search_path: "list[str] | None" = None  # sys.path while modules are imported; None: Python's own
    command: "list[str]" = field(default_factory=list)  # sys.orig_argv
    name: str = ""  # as in the command line
    preload: "list[str] | None" = None
    environment: "dict[str, str]" = field(default_factory=dict)
    folder: str | None = None  # where it runs; None: here
    nodes: int = 0  # 0: as many as there are cores
    group: int = 0
    indices: "Sequence[int]" = ()  # its nodes, in order (groups.gather)
    boxes: "Sequence[int]" = ()  # the box of each of them (boxes.place); empty: all are in one
    host: "Host | None" = None  # if its nodes are elsewhere
    python: "list[str] | None" = (
        None  # the words after `python` and its options; None: it is not a Python program
    )
    source: "tuple[str, str]" = ("", "")  # kind and target of a Python program, however it starts
    debugged: "frozenset[int]" = frozenset()  # nodes that run in a debugger
    debug: "dict[str, Any]" = field(default_factory=dict)  # and their debugger
    in_panes: "frozenset[int]" = frozenset()  # of these, the ones with their own terminal
    takes_interrupt: bool = False  # Ctrl-C waits until the program itself enables it

    @property
    def locatable(self) -> bool:
        """Whether its nodes answer WHERE_SIGNAL."""
        return self.kind != "executable"

    def message(self, where_signal: int) -> dict:
        """The message to the fork server."""
        return {
            "kind": self.kind,
            "target": self.target,
            "arguments": self.arguments,
            "command": self.command,
            "path_entry": self.path_entry,
            "search_path": self.search_path,
            "preload": self.preload,
            "where_signal": where_signal if self.locatable else 0,
            "takes_interrupt": self.takes_interrupt,
        }


class inside:
    """Work in that folder during `with inside(folder):`, then return. None: stay."""

    def __init__(self, folder: "str | None") -> None:
        self._folder = folder
        self._back = -1

    def __enter__(self) -> None:
        if self._folder is None:
            return
        self._back = os.open(os.curdir, getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC)
        try:
            os.chdir(self._folder)
        except OSError as error:
            os.close(self._back)
            raise UsageError(f"spcomm run: --wdir {self._folder}: {_no_folder(error)}") from None

    def __exit__(self, *_error: object) -> None:
        if self._back >= 0:
            os.fchdir(self._back)
            os.close(self._back)


def resolve_all(options: Options) -> "list[Plan]":
    """Find all programs of the command line. Raises `UsageError`, with 126 or 127 as in a shell."""
    plans = []
    for part, environment in zip(options.parts, environments(options), strict=True):
        with inside(part.folder):
            try:
                plan = resolve(part)
                folder = os.getcwd() if part.folder is not None else None
            except FileNotFoundError:  # raised by getcwd
                raise UsageError(
                    f"spcomm run: {part.name}: the current folder does not exist any more, so nothing is found in it; "
                    "cd to another one, or give --wdir"
                ) from None
        plan = replace(plan, folder=folder, nodes=part.nodes or 0, group=part.group, boxes=part.boxes)
        plans.append(with_environment(plan, environment))
    return plans


def with_environment(plan: Plan, environment: "dict[str, str]") -> Plan:
    """Return it with this environment, in which it finds spcomm's MPI library.

    Raises `UsageError` for an executable of another MPI.
    """
    environment = {mpi.MPI4PY_VARIABLE: mpi.library(mpi.MPICH), **environment}
    environment.pop(mpi.RESTORED_VARIABLE, None)  # from a launcher on another machine
    if plan.kind == "executable" and plan.python is None:
        from spcomm.mpi import linked

        complaint = linked.prepare(plan.target, environment)
        if complaint:
            raise UsageError(f"spcomm run: {plan.name}: {complaint}", 126)
    return replace(plan, environment=environment)


def resolve(part: Part) -> Plan:
    """Find one program, from the folder where it will run."""
    if part.module is not None:
        folder = "" if _safe_path() else os.getcwd()
        plan = _python("module", part.module, ["-m", *part.arguments], folder, ["-m", part.module])
    elif part.code is not None:
        plan = _python("code", part.code, ["-c", *part.arguments], "", ["-c", part.code])
    elif part.program == STDIN:
        plan = _python("stdin", "<stdin>", [STDIN, *part.arguments], "", [STDIN])
    else:
        plan = _program(part)
    python = plan.kind != "executable"
    start = part.start or ("fork" if python and sys.platform.startswith("linux") else "exec")
    if start == "fork" and not python:
        raise UsageError(
            f"spcomm run: --start fork is for Python scripts and modules; {part.program} needs --start exec"
        )
    if start == "exec" and python:
        # -u in place of PYTHONUNBUFFERED, which would reach the processes that a node starts.
        words = [sys.executable, "-u", *plan.command[1:]]
        plan = replace(plan, kind="executable", target=sys.executable, arguments=words, command=[])
    if plan.kind == "executable" and part.preload:
        raise UsageError("spcomm run: --preload is for nodes that are forked, not for --start exec")
    return replace(plan, name=part.name, preload=part.preload)


def _python(kind: str, target: str, arguments: "list[str]", entry: str, words: "list[str]") -> Plan:
    """Plan what Python starts. `entry`: `sys.path[0]`. `words`: after `python`, before the program's arguments."""
    keeps_entry = kind != "archive" and _safe_path()
    python = [*words, *arguments[1:]]
    return Plan(
        kind,
        target,
        arguments,
        None if keeps_entry else entry,
        command=[sys.executable, *interpreter_flags(), *python],
        python=python,
        source=(kind, target),
    )


def _program(part: Part) -> Plan:
    name = part.program or ""
    found = name if os.path.exists(name) or os.sep in name or _python_name(name) else in_path(name)
    if found is None or not os.path.exists(found):
        raise UsageError(f"spcomm run: {name}: {_not_found(name)}", 127)
    if os.path.isdir(found):
        if not any(os.path.isfile(os.path.join(found, f"__main__.{ending}")) for ending in ("py", "pyc")):
            raise UsageError(f"spcomm run: {name}: is a directory without a __main__.py, not a program", 126)
        return _file("archive", found, part.arguments)
    if not os.path.isfile(found):
        raise UsageError(
            f"spcomm run: {name}: is a pipe or a device, which gives its text only once, and each node reads the "
            "program; save it in a file",
            126,
        )
    if _python_name(name) or (not os.access(found, os.X_OK) and _python_inside(found)):
        if not os.access(found, os.R_OK):
            raise UsageError(f"spcomm run: {name}: cannot be read (permission denied)", 126)
        return _file("archive" if source.is_archive(found) else "script", found, part.arguments)
    if not os.access(found, os.X_OK):
        raise UsageError(f"spcomm run: {name}: {_not_executable(name)}", 126)
    path = os.path.abspath(found)
    return Plan("executable", path, [name, *part.arguments])


def _file(kind: str, path: str, arguments: "list[str]") -> Plan:
    """Plan the start of a file or a folder, which Python itself could be given."""
    target = _absolute(path)
    entry = target if kind == "archive" else os.path.dirname(os.path.realpath(path))
    words = ["--", path] if path.startswith("-") else [path]
    return _python(kind, target, [path, *arguments], entry, words)


def _absolute(path: str) -> str:
    """Return `__file__` of a program, or the `sys.path[0]` of a folder, as Python makes it: it leaves `..` in."""
    if os.path.isabs(path):
        return path
    return os.getcwd() if path == os.curdir else os.path.join(os.getcwd(), path)


def _no_folder(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such folder"
    return "is not a folder" if isinstance(error, NotADirectoryError) else (error.strerror or str(error))


def _safe_path() -> bool:
    return bool(getattr(sys.flags, "safe_path", False))


def _python_name(name: str) -> bool:
    return name.endswith((".py", ".pyc", ".pyw", ".pyz", ".pyzw", ".zip"))


def _python_inside(path: str) -> bool:
    """Whether a file is a Python program, whatever its name: its first line says so, or Python can read it."""
    try:
        with open(path, "rb") as file:
            line = file.readline(200)
    except OSError:
        return False
    if line.startswith(b"#!"):
        return b"python" in line
    if source.is_archive(path) or source.is_compiled(path):
        return True
    return not path.endswith(_TEXTS + _SOURCES) and source.compiled(path) is not None


def in_path(name: str) -> "str | None":
    """Return the executable that a shell would find."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or os.curdir, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _not_executable(name: str) -> str:
    base, dot, ending = name.rpartition(".")
    compiler = "" if not name.endswith(_SOURCES) else "cc" if ending == "c" else "c++"
    if dot and compiler:
        program = base if os.sep in base else f"./{base}"
        compile_it = f"{compiler} {name} $(spcomm config --cflags --libs) -o {base}"
        return f"is a source file; compile it: {compile_it}; and run {program}"
    if ending == "ipynb":
        return "is a notebook; open it in Jupyter (%load_ext spcomm), or save its cells as a .py file"
    if name.endswith(_TEXTS):
        return "is a text, not a program; give a Python script (.py) or an executable"
    return "is not executable; chmod +x makes it so (a Python script's name ends in .py)"


def _not_found(name: str) -> str:
    if not name.endswith(".py") and os.path.isfile(name + ".py"):
        return f"not found; did you mean {name}.py?"
    from spcomm.launch.cmdline.did_you_mean import near

    if os.sep in name or _python_name(name):
        return f"no such file (looked in {os.path.dirname(os.path.abspath(name))}){near(name)}"
    return f"not found: neither a file here nor a command in PATH{near(name)}"
