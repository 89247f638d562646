# SPDX-License-Identifier: MIT
"""Membership of this process in a run, as its launcher set it.

A node made by the fork server gets it by a call (`join`); an executed node gets it from its environment,
``SPCOMM_NODE="fd:rank:size:device:inode:launcher_pid:group"``. A process without either is alone: a run of one node.
This module imports neither NumPy nor the compiled core.
"""

import os
import sys
from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "SPCOMM_NODE"
REPORT_VARIABLE = "SPCOMM_REPORT"
JOINED_VARIABLE = (
    "SPCOMM_JOINED"  # "pid:parent_pid:rank:size" of a process that is a node, for what it executes
)
STRICT_VARIABLE = "SPCOMM_STRICT"
CLOSE_VARIABLE = "SPCOMM_CLOSE_TIMEOUT"
TRACE_VARIABLE = "SPCOMM_TRACE"
ALONE_VARIABLE = "SPCOMM_ALONE"  # 1: as if no scheduler had started this
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
CLOSE_S = 10.0
CELL = "begin the cell with `%%spcomm -n 4`, after %load_ext spcomm"  # advice for a notebook
NEW_COMM = "; comm is new in each cell, and in each call of a Cluster"


class Membership(namedtuple("Membership", "fd rank size device inode launcher_pid group")):
    """The place of this process in a run.

    `fd` is the descriptor of the shared segment (close-on-exec), `device` and `inode` identify the segment, so that
    a reused descriptor is noticed. `rank` and `size` are those in the group, which is isolated from other groups;
    `group` is its id, 0 or the value of ``spcomm run --group``.
    """

    __slots__ = ()


def is_in_job() -> bool:
    """Whether a cluster's scheduler started this process, and the machines of its job are to be used."""
    is_job = any(os.environ.get(name) for name in _JOBS)
    return is_job and os.environ.get(ALONE_VARIABLE, "") in ("", "0")


_joined: "Membership | None" = None
_owner = 0


def join(membership: "Membership | None") -> None:
    """Make this process a node: called by the fork server in the new process, before any code of the user.

    None: the process is alone from now on.
    """
    global _joined, _owner
    _joined = membership
    _owner = os.getpid()
    if membership is None:
        os.environ.pop(JOINED_VARIABLE, None)
    else:
        mark(membership.rank, membership.size)


def mark(rank: int, size: int) -> None:
    """Record in the environment that this process is a node, so that a program it executes in its place says so.

    Processes that the node starts have other ids, and are runs of their own.
    """
    global _owner
    _owner = os.getpid()
    os.environ[JOINED_VARIABLE] = f"{_owner}:{os.getppid()}:{rank}:{size}"


def membership() -> "Membership | None":
    """Return the run this process belongs to, or None when it is alone.

    A process that a node forked is not that node: it gets None. The first call in an executed node removes the
    variable from `os.environ`, so that programs started by the node do not take its place. ConfigError: a node has
    executed this program in its own place.
    """
    global _joined, _owner
    if _joined is not None:
        return _joined if _owner == os.getpid() else None
    text = os.environ.pop(VARIABLE, None)
    report = os.environ.pop(REPORT_VARIABLE, None)
    if text is None:
        if _owner != os.getpid():
            _refuse_executed(os.environ.get(JOINED_VARIABLE, ""))
        return None
    found = _parse(text)
    if found is None or not is_segment(found):
        return None
    os.set_inheritable(found.fd, False)
    join(found)
    if report is not None:
        _watch(report, found.rank)
    return found


def _refuse_executed(joined: str) -> None:
    *process, rank, size = joined.split(":") if joined.count(":") == 3 else ("", "", "")
    if process == [str(os.getpid()), str(os.getppid())]:
        from spcomm._core import errors

        raise errors.executed_node(rank, size)


def environment(member: Membership, report: int) -> "dict[str, str]":
    """Return the variables that give an executed program its place."""
    return {VARIABLE: ":".join(str(value) for value in member), REPORT_VARIABLE: str(report)}


def strict() -> bool:
    """Whether warnings at the end are errors: ``spcomm run --strict``, or ``SPCOMM_STRICT=1``."""
    return os.environ.get(STRICT_VARIABLE, "") not in ("", "0")


def close_timeout() -> "float | None":
    """Return the seconds a node goes on sending at its end. None: no limit (``--close-timeout 0``, or a debugger)."""
    text = os.environ.get(CLOSE_VARIABLE)
    if text is None:
        return CLOSE_S
    from spcomm.text import duration_s

    seconds = duration_s(text)
    return CLOSE_S if seconds is None else seconds or None


def traced() -> bool:
    """Whether the run records the calls of its nodes: ``spcomm run --trace``."""
    return os.environ.get(TRACE_VARIABLE, "") not in ("", "0")


def _shell() -> "Any":
    """Return the shell of a process that is a notebook's kernel, or IPython; else None."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def in_ipython() -> bool:
    """Whether this process is a notebook's kernel, or IPython."""
    return _shell() is not None


def cell(file: str) -> str:
    """Return the name of the cell whose code has this file, `In[3]`; empty if IPython knows no such cell."""
    name = getattr(getattr(_shell(), "compile", None), "format_code_name", None)
    found = name(file) if name is not None else None
    return found[1] if found is not None else ""


def program() -> str:
    """Return the text after ``spcomm run -n 4`` that starts this program."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    found = sys.argv[0] if getattr(sys, "argv", None) else ""
    if spec is not None and spec.name != "__main__":  # as a folder's
        found = f"-m {spec.name.removesuffix('.__main__')}"
    return found if found not in ("", "-", "-c") else "program.py"


def how_to_have_more() -> str:
    """Return advice for a program that needs more than one node."""
    return CELL if in_ipython() else f"start it with `spcomm run -n 4 {program()}`"


def limits() -> "dict[str, tuple[int, int, int]]":
    """Return (minimum, maximum, default) of each buffer size and tree parameter, by name."""
    from spcomm._core import segments

    return dict(segments.LIMITS)


def _parse(text: str) -> "Membership | None":
    fields = text.split(":")
    if len(fields) != 7 or not all(field.isdecimal() for field in fields):
        return None
    found = Membership(*map(int, fields))
    return found if found.rank < found.size else None


def is_segment(member: Membership) -> bool:
    """Whether the descriptor still is the run's shared memory: a program may have closed or replaced it."""
    try:
        found = os.fstat(member.fd)
    except (OSError, OverflowError):
        return False
    return (found.st_dev, found.st_ino) == (member.device, member.inode)


def trim_tracebacks() -> None:
    """Show uncaught errors as under the launcher, without the frames of spcomm; IPython shows its own."""
    if not in_ipython():
        from spcomm.launch.base import report

        report.trim()


def _watch(text: str, rank: int) -> None:
    """Report an uncaught exception to the launcher (see `launch.base.report`)."""
    if not text.isdecimal():
        return
    from spcomm.launch.base import report

    try:
        report.watch(int(text), rank)
    except OSError:
        pass  # the descriptor is gone: only the exit status reports it then
