# SPDX-License-Identifier: MIT
"""The MPI that mpi4py is bound to: the library that MPI4PY_LIBMPI names, or one that was fixed when it was built."""

import os
import sys

from spcomm import mpi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm.launch.cmdline.plan import Plan

_IMPORT = rb"^(?:import|from)[ \t]+mpi4py\b"
_READ = 1 << 16  # bytes of a program that are searched for an import
_INSTALL = "python -m pip install 'spcomm[mpi]' installs it"
_REINSTALL = "python -m pip install --force-reinstall 'mpi4py>=4.1'"


def is_imported(text: bytes) -> bool:
    """Whether this program may import mpi4py: it has such a line."""
    if b"mpi4py" not in text:  # most programs: they need not wait for the import of re
        return False
    import re

    return re.search(_IMPORT, text, re.MULTILINE) is not None


def check(plan: "Plan") -> str:
    """Return a note on the mpi4py of this program, or "". Raises `UsageError` if it cannot load spcomm's library.

    The program starts on this machine, with the Python that runs this function.
    """
    if plan.python is None or not is_imported(_text(*plan.source, plan.path_entry)):
        return ""
    found = complaint(plan.environment)
    if found:
        from spcomm.launch.base.usage import UsageError

        raise UsageError(f"spcomm run: {plan.name}: {found}")
    if plan.kind == "executable" and _folder() is None:  # spcomm does not see the traceback of such a node
        return f"mpi4py is not installed in this Python; {_INSTALL}"
    return note(plan.environment)


def _text(kind: str, target: str, entry: "str | None") -> bytes:
    """Return the beginning of a program, or b"" if it cannot be read before the start."""
    if kind == "code":
        return target.encode(errors="replace")
    if kind == "archive":
        target = os.path.join(target, "__main__.py")
    elif kind == "module":
        target = _module(target, entry)
    elif kind != "script":
        return b""
    try:
        with open(target, "rb") as file:
            return file.read(_READ)
    except (OSError, ValueError):
        return b""  # the start reports that


def _module(name: str, entry: "str | None") -> str:
    """Return the file that `-m` runs, or ""; packages around it are not imported."""
    path = name.replace(".", os.sep)
    folders = [*([entry or os.curdir] if entry is not None else []), *sys.path]
    files = (
        os.path.join(folder, file)
        for folder in folders
        for file in (f"{path}{os.sep}__main__.py", f"{path}.py")
    )
    return next((file for file in files if os.path.isfile(file)), "")


def _folder() -> "str | None":
    """Return the folder where this Python finds mpi4py."""
    return next((path for entry in sys.path if os.path.isdir(path := os.path.join(entry, "mpi4py"))), None)


def complaint(environment: "dict[str, str]") -> str:
    """Return one sentence on an mpi4py that cannot load spcomm's library, or "". The import reports a missing one."""
    folder = _folder()
    modules = [
        name
        for name in (os.listdir(folder) if folder else ())
        if name.startswith("MPI.") and name.endswith(".so")
    ]
    if (
        folder is None
        or not modules
        or any(name.startswith(("MPI.mpich.", "MPI.mpiabi.")) for name in modules)
    ):
        return ""
    from spcomm.mpi import linked

    found = linked.dynamic(os.path.join(folder, modules[0]))
    other = [name for name in (found.needed if found else ()) if name.startswith("libmpi")]
    if not other or linked.problem(os.path.join(folder, modules[0]), environment) == ("", False):
        return ""  # for example one that `spcomm mpicc` compiled
    return f"the mpi4py in {folder} is bound to another MPI ({other[0]}); {_REINSTALL} brings one that is not"


def note(environment: "dict[str, str]") -> str:
    """Return one sentence on a library that the user chose for mpi4py, or ""."""
    chosen = environment.get(mpi.MPI4PY_VARIABLE)
    own = mpi.library(mpi.MPICH)
    if not chosen or chosen == own or (os.path.exists(chosen) and os.path.samefile(chosen, own)):
        return ""
    return (
        f"{mpi.MPI4PY_VARIABLE} is {chosen}, so mpi4py loads that MPI, in which each node is a run of its own; "
        f"unset {mpi.MPI4PY_VARIABLE} lets it load spcomm's"
    )
