# SPDX-License-Identifier: MIT
"""The MPI library: where its files are, and how programs find them.

`linked` reads which MPI an executable is linked to, `bindings` which one mpi4py is bound to, and `compiler` is
`spcomm mpicc`. The folder `bin` has the plain names for makefiles; the build makes `lib` and `include`.
"""

import os
import sys

MPI4PY_VARIABLE = "MPI4PY_LIBMPI"  # mpi4py loads the library that it names
LOADER_VARIABLE = "DYLD_LIBRARY_PATH" if sys.platform == "darwin" else "LD_LIBRARY_PATH"
# The loader's path as it was before; the node restores it (csrc/api/spc_api_startup.c) for programs that it starts.
RESTORED_VARIABLE = "SPCOMM_LIBRARY_PATH"
# The library with MPICH's ABI, for mpi4py and programs that MPICH's mpicc compiled; and with the standard's ABI, for
# those of `spcomm mpicc`.
MPICH = "libmpi.12.dylib" if sys.platform == "darwin" else "libmpi.so.12"
STANDARD = "libmpi_abi.1.dylib" if sys.platform == "darwin" else "libmpi_abi.so.1"


def folder(name: str) -> str:
    """Return the folder `lib`, `include` or `bin`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), name)


def library(name: str) -> str:
    """Return the path of the library of that name."""
    return os.path.join(folder("lib"), name)


def explain(error: BaseException) -> None:
    """Add to the exception for a missing mpi4py the command that installs it."""
    if isinstance(error, ModuleNotFoundError) and error.name == "mpi4py":
        error.add_note(
            "mpi4py is not installed in this Python; python -m pip install 'spcomm[mpi]' installs it"
        )
