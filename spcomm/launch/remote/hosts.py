# SPDX-License-Identifier: MIT
"""`--host` and related options: the launcher's view of boxes on other machines.

A program becomes one plan for each box. `relay` starts it on a host that ssh reaches; to the launcher the relay is
an ordinary fork server, and `box` does there what the launcher does here. Imported only where hosts are given.
"""

import copy
import os
import shlex
import sys
import time

from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.machines import tunnels, why
from spcomm.launch.local.fork_client import ForkClient
from spcomm.launch.remote import handshake
from spcomm.launch.remote.box_proxy import CLOCK, LINES, LOOK, NOW, RemoteSegment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.cmdline.options import Options, Part
    from spcomm.launch.cmdline.plan import Plan
    from spcomm.launch.remote.transport_processes import TransportProcesses

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=6"
_SIZES = ("slots", "ring", "arena", "scratch", "queue_limit")


# ---- from one program to one for each box


class Host:
    """The place of a box on another machine, and the way to it."""

    relay = "remote.relay"  # the module that does it

    def __init__(self, name: str, options: "Options", bare: bool) -> None:
        self.name = name
        self.ssh = shlex.split(options.ssh or SSH)
        self.tunnel = tunnels(options)
        self.box: dict[str, Any] = {"bare": bare, "strict": options.strict}  # orders for the box there
        self.secrets = b""  # of the box
        self.port = 0
        self.descriptors: tuple[int, ...] = ()  # more descriptors that the relay needs

    def about(self) -> "dict[str, Any]":
        """The message to the relay."""
        return {
            "host": self.name,
            "command": self.command(),
            "secrets": self.secrets,
            "box": self.box,
            "tunnel": self.tunnel and bool(self.port),
        }

    def command(self) -> "list[str]":
        """The command that starts the box."""
        tunnel = ["-o", "ExitOnForwardFailure=yes", "-R", f"127.0.0.1:0:127.0.0.1:{self.port}"]
        box = f"exec {shlex.quote(sys.executable)} -m spcomm box"
        return [*self.ssh, *(tunnel if self.tunnel and self.port else []), self.name, box]


def _is_here(name: str) -> bool:
    return name == "localhost" or name == os.uname().nodename


def spread(options: "Options", plan: "Plan", make: "type[Host] | None" = None) -> "list[Plan]":
    """Return a plan for each box. With `make`, no box is on this machine, and `make` creates the host of each."""
    part = options.parts[0]
    names = {name for name, _value in part.exports}
    plans = []
    for box, (name, nodes) in enumerate(options.hosts or ()):
        one = copy.copy(plan)
        one.nodes, one.box = nodes, box
        if make is not None or not _is_here(name):
            one.host = (make or Host)(name, options, part.environment == "none")
            _describe(one.host, part, plan.environment, names)
        plans.append(one)
    return plans


def _describe(host: Host, part: "Part", environment: "dict[str, str]", names: "set[str]") -> None:
    """Return the description of the program that a box needs."""
    host.box["folder"] = os.path.abspath(part.folder or os.getcwd())
    host.box["part"] = {
        field: getattr(part, field) for field in ("start", "preload", "module", "program", "arguments")
    }
    host.box["environment"] = {
        key: value
        for key, value in environment.items()
        if key in names
        or key == "PYTHONHASHSEED"
        or (key.startswith(("SPCOMM_", "OMP_NUM_", "OPENBLAS_")) and key != "SPCOMM_CODE")
    }


def place(plans: "list[Plan]", groups: "list[Group]") -> None:
    """Set in the group where its nodes are, and which boxes are elsewhere."""
    group = groups[0]
    if len(plans) > 1:
        group.places = [plan.box or 0 for plan in plans for _node in range(plan.nodes)]
    group.far = {plan.box or 0: plan.host for plan in plans if plan.host is not None}


def busy(plans: "list[Plan]") -> int:
    """Return the number of processes of the run on this machine."""
    here = sum(plan.nodes for plan in plans if plan.host is None)
    return here + sum(plan.host is None for plan in plans) + (len(plans) > 1)


def far_segment(
    group: "Group", box: int, mask: int, options: "Options", buffers: "dict[str, Any]"
) -> RemoteSegment:
    """Return the stand-in for a box's memory; the box receives the orders to make it."""
    sizes = {name: value for name, value in buffers.items() if name != "begun_ns"}
    if "begun_ns" in buffers:  # another machine has another monotonic clock
        group.far[box].box["begun_ns"] = time.time_ns() - (time.monotonic_ns() - buffers["begun_ns"])
    group.far[box].box["link_timeout"], group.far[box].box["route"] = options.link_timeout, options.route
    group.far[box].box["segment"] = {
        **sizes,
        "disable": mask,
        "perturb": options.seed,
        "rendezvous": options.rendezvous,
        "prefault": options.prefault,
        "trace_events": options.recorded,
    }
    return RemoteSegment(group.size, group.far[box].name, options.recorded)


def same_sizes(segments: "Any", size: int, mask: int, buffers: "dict[str, Any]") -> "dict[str, Any]":
    """Return the sizes that this machine would choose, for all boxes, whatever memory theirs have."""
    found = segments.plan(size, disable=mask, **buffers)
    return {**{name: found[name] for name in _SIZES}, **buffers}


# ---- the launcher's end


def fork_client(plan: "Plan", where_signal: int, limit: "tuple[int, int] | None") -> ForkClient:
    """Return the fork client of a plan."""
    return ForkClient(plan, where_signal, limit) if plan.host is None else RemoteForkClient(plan)


class RemoteForkClient(ForkClient):
    """A box elsewhere, presented as a fork server of this machine."""

    def __init__(self, plan: "Plan") -> None:
        self.plan = plan
        self._exited: set[int] = set()
        self._spawn(plan.host.relay, ["-s"] if sys.flags.no_user_site else [], None, dict(os.environ))

    def run(
        self, group: "Group", report: int, where: int, cpus: "list[tuple[int, ...]] | None", stats: bool
    ) -> None:
        self._first = group.first
        host = self.plan.host
        self.far: RemoteSegment = group.segments[self.plan.box or 0]
        host.box.update(
            number=self.plan.box,
            first=self.plan.indices.start - group.first,
            nodes=self.plan.nodes,
            size=group.size,
            group=group.number,
            places=group.places,
            bind=cpus is not None,
            stats=stats,
        )
        self._send(("run", host.about()), (report, *host.descriptors))
        self._is_traced = bool(host.box["segment"]["trace_events"])
        if self._is_traced:  # it answers before its nodes begin: this gives a first reading of its clock
            self.ask_clock()

    def receive(self) -> "tuple | None":
        message = super().receive()
        if message is None:
            return None
        self._check(*message)
        if message[0] == "ready" and self._is_traced:
            self.ask_clock()
        elif message[0] == "noted" and isinstance(message[-1], dict):
            self.far.known = message[-1]
        elif message[0] == "answer" and isinstance(message[-1], dict):
            self.far.answer(message[1], message[-1])
        elif message[0] == "trace":
            self.far.add_trace(*message[1:])
        return message

    def _check(self, verb: str, *rest: "Any") -> None:
        """Check that a box reports only its own nodes, and the end of each once. Raises `ValueError`."""
        told = rest[0] if verb in ("started", "unstarted") else rest[:1] if verb == "exited" else ()
        if any(type(index) is not int or index not in self.plan.indices for index in told):
            raise ValueError(f"{verb}: {rest}")
        if verb == "exited":
            index, status = rest[:2]
            if index in self._exited or type(status) is not int or not 0 <= status <= 0xFFFF:
                raise ValueError(f"{verb}: {rest}")
            self._exited.add(index)

    @property
    def first(self) -> int:
        """The index of node 0 of its group."""
        return self._first

    def ask_clock(self) -> None:
        """Ask for its clock, see `box_proxy.clock`; not counted among the questions."""
        if self.far.ask_clock():
            self._send(("ask", self.far.asked, CLOCK, []))

    def ask_look(self, now: bool = False) -> None:
        """Ask for the activity of its nodes. See `inquiry`."""
        self._ask(NOW if now else LOOK, [])

    def ask_lines(self, ranks: "list[int]") -> None:
        """Ask for the lines at which these nodes are. See `box_proxy.lines`."""
        self._ask(LINES, ranks)

    def call(self, secret: bytes) -> None:
        """Begin a call of a cluster, as `far` and `host.box` describe it; the answer is "called"."""
        box = self.plan.host.box
        about = {name: box[name] for name in ("segment", "begun_ns", "job") if name in box}
        self._is_traced = bool(box["segment"]["trace_events"])
        self._send(("call", about, secret))
        if self._is_traced:
            self.ask_clock()

    def uncall(self) -> None:
        """End it; the answer is "uncalled", after all that the box has to report."""
        self._send(("uncall",))

    def mark(self, rank: int, code: int) -> None:
        """Mark one of its nodes as finished, or as failing with this exit code."""
        self._send(("mark", rank, code))

    def _ask(self, question: str, ranks: "list[int]") -> None:
        """Do nothing here: the answer comes as a message."""
        self.far.asked += 1
        self._send(("ask", self.far.asked, question, ranks))


def tell(plans: "list[Plan]", transports: "TransportProcesses | None", listen: "str | None") -> None:
    """Send the boxes the server's address and their secrets. Log the address on which it listens."""
    said = set()
    for plan in plans:
        if plan.host is not None and transports is not None:
            host, (address, port) = plan.host, transports.address
            if address == "0.0.0.0":
                address = _reaching(host.name)
            host.secrets, host.port = transports.secrets[plan.box], port
            host.box.update(job=transports.job, address=[address, port])
            said.add(f"{address}:{port}")
    if listen is not None and said and transports is not None:
        how = (
            "it stays on this machine"
            if transports.address[0] == handshake.LOOPBACK
            else "connections are encrypted"
        )
        os.write(2, f"spcomm: boxes connect to {', '.join(sorted(said))}; {how}\n".encode())


def listen(options: "Options", plans: "list[Plan]") -> "str | None":
    """Return the address on which the server listens; None: this machine only. Raises `UsageError`."""
    far = [plan.host for plan in plans if plan.host is not None]
    if not far or (tunnels(options) and options.listen is None):
        return None
    if options.listen is not None:
        return options.listen
    return _reaching(far[0].name)


def _reaching(host: str) -> str:
    """Return the address of this machine from which the route to a host starts."""
    import _socket

    name = host.rpartition("@")[2]
    try:
        found = _socket.getaddrinfo(name, 9, _socket.AF_INET, _socket.SOCK_DGRAM)
        probe = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
        probe.connect(found[0][4])  # sends nothing
        address = probe.getsockname()[0]
        probe.close()
    except OSError as error:
        raise UsageError(
            f"spcomm run: which address of this machine reaches host {name}? ({why(error)}); give it: --listen ADDRESS"
        ) from None
    return address
