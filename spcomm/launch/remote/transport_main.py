# SPDX-License-Identifier: MIT
"""Main loops of the server's and the gateways' processes (`transport_processes`). Python admits and makes connections;
the C core moves frames, in a thread that takes the GIL only to encrypt and decrypt.
"""

import _thread
import errno
import os
import signal
import time
from typing import TYPE_CHECKING

from spcomm import resource_limits
from spcomm._core import net, segments
from spcomm._core.diagnose import packed
from spcomm._core.errors import AuthenticationError, ConnectionLostError, SpcommError, VersionError
from spcomm.launch.base.loop import Loop
from spcomm.launch.base.process import FORWARDED
from spcomm.launch.base.wire import Wire
from spcomm.launch.remote import handshake
from spcomm.launch.remote.handshake import SECRET_BYTES

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from spcomm._core.diagnose import Wait
    from spcomm.launch.remote.tls import Session

_AGAIN_S = (0.0, 0.01, 0.05, 0.2, 1.0)  # between attempts to connect; the last one repeats
_LASTING_S = 1.0  # a connection that broke sooner counts as one more failed attempt
_REPORT_S = 3  # for the report that the launcher was killed
FAREWELL = 1 << 14  # added to a box's number: a connection that only says that this box has lost its launcher
_REFUSALS = 3  # in a row, at first: that is another server, not a byte altered on the way


def become(label: str, work: "Callable[[], None]", wire: Wire, kept: "list[int]", launcher: int) -> None:
    """Run that in the forked process, with all signals blocked, and end. Does not return.

    The process dies with the launcher. 0: it only ends with it, as `work` decides.
    """
    code = 125
    try:
        _settle(label, kept, launcher)
        work()
        code = 0
    except BaseException as error:
        complain(wire, error)
    finally:
        os._exit(code)


def _settle(label: str, kept: "list[int]", launcher: int) -> None:
    """Close the launcher's descriptors except the necessary ones, above all its sockets, whose ends others wait for."""
    # SIGCONT: a stopped process that reports has to go on to notice the end of its parent.
    net.die_with_parent(signal.SIGKILL if launcher else signal.SIGCONT)
    if launcher and os.getppid() != launcher:
        os._exit(0)
    os.setpgid(0, 0)  # Ctrl-C is for the launcher
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
        # Ignored at first: signals that a terminal sent before this group existed are the launcher's, and dropped here.
        signal.signal(number, signal.SIG_IGN)
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, FORWARDED)
    before = 2
    for fd in sorted(kept):
        net.close_range(before + 1, fd - 1)
        before = fd
    net.close_range(before + 1, 2**31 - 1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    net.rename(label)


def complain(wire: Wire, error: BaseException, culprit: int = -1) -> None:
    """`culprit`: the box at fault; -1: none."""
    number = errno.ENOMEM if isinstance(error, MemoryError) else getattr(error, "errno", None)
    if isinstance(error, SpcommError):
        message = ("failed", str(error), culprit)
    elif number in resource_limits.SHORTAGES:
        name = f"the gateway of box {culprit}" if culprit >= 0 else "the server between the boxes"
        shortage = f"{name} has no resources left ({os.strerror(number)})"
        message = ("failed", f"{shortage}; {resource_limits.advice(number)}", culprit)
    else:
        import traceback

        message = ("broken", "".join(traceback.format_exception(error)), culprit)
    try:
        wire.send(message)
    except OSError:
        pass


class Runner:
    """Runs a function in a thread. Its descriptor is readable when that is over."""

    def __init__(self, work: "Callable[[], object]") -> None:
        self.over = False
        self._error: BaseException | None = None
        self._read, self._write = os.pipe()
        _thread.start_new_thread(self._run, (work,))

    def fileno(self) -> int:
        return self._read

    def _run(self, work: "Callable[[], object]") -> None:
        try:
            work()
        except BaseException as error:
            self._error = error
        self.over = True
        os.write(self._write, b".")

    def result(self) -> None:
        """Raise the exception of the function, if any."""
        if self._error is not None:
            raise self._error


class Connector:
    """Keeps a gateway connected: connects it at first, and whenever the connection breaks."""

    def __init__(
        self,
        loop: Loop,
        gateway: net.Gateway,
        address: "tuple[str, int]",
        secret: bytes,
        job: int,
        box: int,
        blocked: "Callable[[dict[int, Wait], bool], None]",
    ) -> None:
        """`blocked(waits, in_vain)` receives the nodes that are proven to wait for ever, or in vain."""
        self._loop = loop
        self._gateway = gateway
        self._blocked = blocked
        self._place = address, secret, job, box
        self._attempts = 0  # since the last lasting connection
        self._begun = time.monotonic()
        self._connected: float | None = None  # when
        self.peers: Any = None  # makes connections to other gateways: `peers.Peers`, `mpi_gateway.Peers`

    def start(self) -> None:
        self._loop.add(self._gateway.news, self._heard)
        self._connect()

    def _heard(self) -> None:
        is_broken = self._gateway.is_broken()
        if self.peers is not None:
            self.peers.look()
        if is_broken:
            if self._connected is not None and time.monotonic() - self._connected >= _LASTING_S:
                self._attempts = 0
            self._again()
        waits, in_vain = self._gateway.blocked()
        if waits:
            self._blocked(waits, in_vain)

    def _again(self) -> None:
        self._loop.at("connect", _AGAIN_S[min(self._attempts, len(_AGAIN_S) - 1)], self._connect)
        self._attempts += 1

    def _connect(self) -> None:
        try:
            sock, session = handshake.enter(*self._place)
        except (AuthenticationError, VersionError):
            if self._connected is None and self._attempts >= _REFUSALS:
                raise
            self._again()
            return
        except OSError:
            self._give_up_in_time()
            self._again()
            return
        self._loop.forget("connect")
        self._connected = time.monotonic()
        if self.peers is not None:
            self.peers.reached(sock.getsockname()[0])
        self._gateway.attach(sock.detach(), session)

    def _give_up_in_time(self) -> None:
        """Raise if the first connection takes too long; after it, the gateway itself raises."""
        (host, port), _secret, _job, box = self._place
        if self._connected is None and time.monotonic() - self._begun >= self._gateway.link_timeout:
            raise ConnectionLostError(
                f"box {box} cannot reach the server at {host}:{port}, for {self._gateway.link_timeout:g} s now"
            )


def make_secrets(boxes: int) -> "list[bytes]":
    """Make the secrets of a run, and return those of each box: its own, then one that it shares with each box."""
    shared = {(one, two): os.urandom(SECRET_BYTES) for two in range(boxes) for one in range(two + 1)}
    return [
        b"".join(
            [os.urandom(SECRET_BYTES), *(shared[min(box, other), max(box, other)] for other in range(boxes))]
        )
        for box in range(boxes)
    ]


class Job:
    """The boxes of one group, to a server."""

    def __init__(self, number: int, secrets: "list[bytes]") -> None:
        self.number = number
        self.secrets = secrets  # by box, of `make_secrets`


def serve(
    wire: Wire,
    listener: "socket.socket",
    jobs: "dict[int, Job]",
    places: "dict[int, list[int]]",
    link_timeout: float,
) -> None:
    """Run the server until all boxes have ended. `jobs` and `places` (the box of each rank): by group."""
    loop = Loop()
    server = net.Server(link_timeout, disable=segments.disable_mask())

    def admit(job: int, box: int, fd: int, session: "Session | None") -> None:
        if box < FAREWELL:
            server.adopt(job, box, fd, session)
            return
        os.close(fd)
        wire.send(("lost", next(group for group in jobs if jobs[group].number == job), box - FAREWELL))

    by_box = {}
    for group, job in jobs.items():
        server.add_job(job.number, places[group])
        for box, given in enumerate(job.secrets):
            by_box[job.number, box] = by_box[job.number, box + FAREWELL] = given[:SECRET_BYTES]
    handshake.Gate(loop, listener, by_box, admit).open()
    _until_over(loop, wire, server.run)
    for sentence in server.failures.values():
        raise ConnectionLostError(sentence)
    counts = {
        (group, box): server.counts(job.number, box)
        for group, job in jobs.items()
        for box in range(len(job.secrets))
    }
    wire.send(("counted", counts))


def carry(
    wire: Wire,
    address: "tuple[str, int]",
    secrets: bytes,
    job: int,
    box: int,
    segment: int,
    link_timeout: float,
    places: "list[int] | None" = None,
    killed: "Callable[[], None] | None" = None,
    connect: "Callable[[net.Gateway], Any] | None" = None,
) -> None:
    """Run the gateway of a box until all of its nodes have ended, and their messages have been carried.

    `secrets`: of `make_secrets`, for that box. `places`: the box of each rank, if gateways have links to each other;
    `connect` returns what makes their connections, if that is not TCP. `killed`: reports that the launcher was killed,
    if it was.
    """
    loop = Loop()
    gateway = net.Gateway(segment, job, link_timeout, places is not None)

    def tell(waits: "dict[int, Wait]", in_vain: bool) -> None:
        wire.send(("deadlock", packed(waits), in_vain))

    try:
        connector = Connector(loop, gateway, address, secrets[:SECRET_BYTES], job, box, tell)
        if connect is not None:
            connector.peers = connect(gateway)
        elif places is not None:
            from spcomm.launch.remote import peers

            connector.peers = peers.Peers(loop, gateway, secrets[SECRET_BYTES:], job, box)
        connector.start()
        _until_over(loop, wire, gateway.run, killed)
    except BaseException as error:
        complain(wire, error, gateway.culprit)  # first: the parent must learn of it before the nodes
        gateway.disconnect()
        os._exit(125)
    if places is not None:
        wire.send(("counted", {other: gateway.peer_counts(other) for other in set(places) - {box}}))
    gateway.close()


def _until_over(
    loop: Loop, wire: Wire, work: "Callable[[], object]", killed: "Callable[[], None] | None" = None
) -> None:
    runner = Runner(work)
    loop.add(wire.fileno(), lambda: _end(killed))  # readable only when the launcher is gone
    loop.add(runner.fileno(), lambda: None)
    while not runner.over:
        loop.turn()
    runner.result()


def _end(killed: "Callable[[], None] | None") -> None:
    """End with the launcher, which has ended without closing this process."""
    if killed is not None:
        signal.alarm(_REPORT_S)  # ends the process
        killed()
    os._exit(0)
