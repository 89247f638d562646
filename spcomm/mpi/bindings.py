# SPDX-License-Identifier: MIT
"""The MPI that mpi4py is bound to: the library that MPI4PY_LIBMPI names, or another one for good."""

import os
import re
import sys

from spcomm import mpi
from spcomm.mpi import linked

_IMPORT = re.compile(rb"^(?:import|from)[ \t]+mpi4py\b", re.MULTILINE)
_REINSTALL = "python -m pip install --force-reinstall 'mpi4py>=4.1'"


def is_imported(text: bytes) -> bool:
    """Whether this program imports mpi4py, whatever it does else."""
    return _IMPORT.search(text) is not None


def complaint(environment: "dict[str, str]") -> str:
    """Return one sentence on an mpi4py that cannot load spcomm's library, or "". A missing one complains itself."""
    folder = next((path for entry in sys.path if os.path.isdir(path := os.path.join(entry, "mpi4py"))), None)
    modules = [name for name in (os.listdir(folder) if folder else ()) if re.match(r"MPI\..*\.so$", name)]
    if (
        folder is None
        or not modules
        or any(name.startswith(("MPI.mpich.", "MPI.mpiabi.")) for name in modules)
    ):
        return ""
    found = linked.dynamic(os.path.join(folder, modules[0]))
    other = [name for name in (found.needed if found else ()) if name.startswith("libmpi")]
    if not other or linked.problem(os.path.join(folder, modules[0]), environment) == ("", False):
        return ""  # also one that `spcomm mpicc` has compiled
    return f"the mpi4py in {folder} is bound to another MPI ({other[0]}); {_REINSTALL} brings one that is not"


def note(environment: "dict[str, str]") -> str:
    """Return one sentence on a library that the user has chosen for mpi4py, or ""."""
    chosen = environment.get(mpi.MPI4PY_VARIABLE)
    own = mpi.library(mpi.MPICH)
    if not chosen or chosen == own or (os.path.exists(chosen) and os.path.samefile(chosen, own)):
        return ""
    return (
        f"{mpi.MPI4PY_VARIABLE} is {chosen}, so mpi4py loads that MPI, in which each node is a run of its own; "
        f"unset {mpi.MPI4PY_VARIABLE} lets it load spcomm's"
    )
