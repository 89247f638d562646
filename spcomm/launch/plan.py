# SPDX-License-Identifier: MIT
"""What to start: finds the program as a shell and Python would, and decides how its nodes start."""

import os
import sys

from spcomm.launch.options import Options, UsageError
from spcomm.launch.process import interpreter_flags


class Plan:
    """One program, ready to be started `nodes` times."""

    def __init__(
        self, kind: str, target: str, arguments: "list[str]", path_entry: "str | None" = None
    ) -> None:
        self.kind = kind  # script, module, executable: what a forked process does
        self.target = target  # absolute path, or the module's name
        self.arguments = arguments  # sys.argv, or argv of an executable
        self.path_entry = path_entry  # sys.path[0]; None: Python was told to leave it out
        self.command: list[str] = []  # sys.orig_argv

    def message(self, preload: "list[str] | None", where_signal: int) -> dict:
        """What the warm process is told."""
        return {
            "kind": self.kind,
            "target": self.target,
            "arguments": self.arguments,
            "command": self.command,
            "path_entry": self.path_entry,
            "preload": preload,
            "where_signal": where_signal if self.kind != "executable" else 0,
        }


def resolve(options: Options) -> Plan:
    """Find the program that the options name. Raises `UsageError`, with 126 or 127 as in a shell."""
    if options.module is not None:
        plan = Plan(
            "module", options.module, ["-m", *options.arguments], None if _safe_path() else os.getcwd()
        )
        plan.command = [sys.executable, *interpreter_flags(), "-m", options.module, *options.arguments]
    else:
        plan = _program(options)
    python = plan.kind != "executable"
    start = options.start or ("fork" if python and sys.platform.startswith("linux") else "exec")
    if start == "fork" and not python:
        raise UsageError(
            f"spcomm run: --start fork is for Python scripts and modules; {options.program} needs --start exec"
        )
    if start == "exec" and python:
        plan = Plan("executable", sys.executable, plan.command)
    if plan.kind == "executable" and options.preload:
        raise UsageError(
            "spcomm run: --preload is for nodes that are forked from a warm process, not for --start exec"
        )
    return plan


def _program(options: Options) -> Plan:
    name = options.program or ""
    found = name if os.path.exists(name) or os.sep in name or _python_name(name) else _in_path(name)
    if found is None or not os.path.exists(found):
        raise UsageError(f"spcomm run: {name}: {_not_found(name)}", 127)
    if os.path.isdir(found):
        if not os.path.isfile(os.path.join(found, "__main__.py")):
            raise UsageError(f"spcomm run: {name}: is a directory without a __main__.py, not a program", 126)
        return _python(found, options.arguments)
    if _python_name(name) or (not os.access(found, os.X_OK) and _python_inside(found)):
        if not os.access(found, os.R_OK):
            raise UsageError(f"spcomm run: {name}: cannot be read (permission denied)", 126)
        return _script(found, options.arguments)
    if not os.access(found, os.X_OK):
        raise UsageError(
            f"spcomm run: {name}: is not executable; chmod +x makes it so (a Python script's name ends in .py)",
            126,
        )
    path = os.path.abspath(found)
    return Plan("executable", path, [name, *options.arguments])


def _script(path: str, arguments: "list[str]") -> Plan:
    absolute = os.path.abspath(path)
    entry = None if _safe_path() else os.path.dirname(os.path.realpath(path))
    plan = Plan("script", absolute, [path, *arguments], entry)
    plan.command = [sys.executable, *interpreter_flags(), path, *arguments]
    return plan


def _python(path: str, arguments: "list[str]") -> Plan:
    """A directory that Python itself has to open."""
    return Plan("executable", sys.executable, [sys.executable, *interpreter_flags(), path, *arguments])


def _safe_path() -> bool:
    return bool(getattr(sys.flags, "safe_path", False))


def _python_name(name: str) -> bool:
    return name.endswith((".py", ".pyc", ".pyw"))


def _python_inside(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            line = file.readline(200)
    except OSError:
        return False
    return line.startswith(b"#!") and b"python" in line


def _in_path(name: str) -> "str | None":
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or os.curdir, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _not_found(name: str) -> str:
    if not name.endswith(".py") and os.path.isfile(name + ".py"):
        return f"not found; did you mean {name}.py?"
    if os.sep in name or _python_name(name):
        return f"no such file (looked in {os.path.dirname(os.path.abspath(name))})"
    return "not found: neither a file here nor a command in PATH"
