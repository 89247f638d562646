# SPDX-License-Identifier: MIT
"""`--host` and related options: the launcher's view of boxes on other machines.

`spread` divides each program among this machine and the boxes elsewhere. `relay` starts a box on a host that ssh
reaches; to the launcher the relay is an ordinary fork server, and `box` does there what the launcher does here, for all
programs and groups of the box. Imported only where hosts are given.
"""

import os
import shlex
import sys
import time
from typing import TYPE_CHECKING

from spcomm.launch.base import loopback
from spcomm.launch.base.record import replace
from spcomm.launch.base.usage import UsageError, from_here
from spcomm.launch.cmdline.environment import THREADS
from spcomm.launch.cmdline.groups import Group, Placement, choose_route, gather
from spcomm.launch.cmdline.machines import HERE, tunnels, why
from spcomm.launch.local.fork_client import ForkClient
from spcomm.launch.remote import CLOCK
from spcomm.launch.remote.box_proxy import RemoteBox, RemoteSegment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from spcomm.launch.cmdline.options import Options, Part
    from spcomm.launch.cmdline.plan import Plan
    from spcomm.launch.remote.mpi_link import MpiLink
    from spcomm.launch.remote.transport_main import Job
    from spcomm.launch.remote.transport_processes import TransportProcesses

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=6"
_SIZES = ("slots", "ring", "arena", "scratch", "queue_limit")


# ---- from programs to those of each box


class Host:
    """The place of a box on another machine, and the way to it."""

    relay = "remote.relay"  # the module that does it
    what = "host"  # the noun for it in messages

    def __init__(self, number: int, name: str, options: "Options") -> None:
        """`number`: of the box, among those of the run."""
        self.name = name
        self.ssh = shlex.split(options.reach or options.ssh or SSH)
        self.is_ssh = options.reach is None
        self.tunnel = tunnels(options)
        # Orders for the box there.
        self.box: dict[str, Any] = {
            "number": number,
            "strict": options.strict,
            "is_traced": options.is_traced,
            "link_timeout": options.link_timeout,
            "programs": [],
            "groups": [],
        }
        self.secrets = b""  # of its groups, one after another
        self.port = 0
        self.descriptors: tuple[int, ...] = ()  # more descriptors that the relay needs
        self.far = RemoteBox(name)

    @property
    def title(self) -> str:
        return f"{self.what} {self.name}"

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
        if not self.is_ssh:
            words = [word.replace("{host}", self.name) for word in self.ssh]
            return [*words, sys.executable, "-m", "spcomm", "box"]
        tunnel = ["-o", "ExitOnForwardFailure=yes", "-R", f"127.0.0.1:0:127.0.0.1:{self.port}"]
        box = f"exec {shlex.quote(sys.executable)} -m spcomm box"
        return [*self.ssh, *(tunnel if self.tunnel and self.port else []), self.name, box]

    def folder(self, part: "Part") -> str:
        """The folder in which a program runs there."""
        return os.path.abspath(from_here(part.folder or os.curdir))

    def take_jobs(self, jobs: "dict[int, Job]") -> None:
        """Take the job of each group that has other boxes, and the secrets of this one."""
        for about in self.box["groups"]:
            if about["number"] in jobs:
                job = jobs[about["number"]]
                secrets = job.secrets[about["box"]]
                about.update(job=job.number, secret_bytes=len(secrets))
                self.secrets += secrets


def _is_here(name: str) -> bool:
    return name == HERE or name == os.uname().nodename


def spread(options: "Options", programs: "list[Plan]", session: "Any" = None) -> Placement:
    """Return the place of each node.

    A program of this machine has a fork client of its own, and each box elsewhere has one for all programs. With
    `session` no box is on this machine: its method `host` makes the host of each.
    """
    programs, groups = gather(programs)
    route = choose_route(groups, options)
    make = Host if session is None else session.host
    hosts = [
        None if session is None and _is_here(name) else make(number, name, options)
        for number, name in enumerate(options.hosts or ())
    ]
    groups = [replace(group, far=_far_boxes(group, hosts)) for group in groups]
    machines = []
    for host in dict.fromkeys(hosts):
        if host is not None:
            host.box["route"] = route
        plans = []
        for plan, part in zip(programs, options.parts, strict=True):
            pairs = zip(plan.indices, plan.boxes, strict=True)
            indices = [index for index, number in pairs if hosts[number] is host]
            if indices:
                one = replace(plan, host=host, indices=indices, nodes=len(indices))
                plans.append(one)
                if host is not None:
                    host.box["programs"].append(_described(one, part))
        machines += [[plan] for plan in plans] if host is None else [plans]
    return Placement(machines, groups, route)


def _far_boxes(group: "Group", hosts: "list[Host | None]") -> "dict[int, Host]":
    found = {box: hosts[number] for box, number in enumerate(group.boxes_of_run)}
    return {box: host for box, host in found.items() if host is not None}


def _described(plan: "Plan", part: "Part") -> "dict[str, Any]":
    """Return the description of a program that a box needs."""
    names = {name for name, _value in part.exports}
    return {
        "bare": part.environment == "none",
        "folder": plan.host.folder(part),
        "part": {
            field: getattr(part, field)
            for field in ("start", "preload", "module", "code", "program", "arguments")
        },
        "environment": {
            key: value
            for key, value in plan.environment.items()
            if key in names
            or key in THREADS
            or key == "PYTHONHASHSEED"
            or (key.startswith("SPCOMM_") and key != "SPCOMM_CODE")
        },
        "group": plan.group,
        "indices": list(plan.indices),
    }


def far_segment(
    group: "Group", box: int, mask: int, settings: "dict[str, Any]", buffers: "dict[str, Any]"
) -> RemoteSegment:
    """Return the stand-in for a group's memory in a box; the box receives the orders to make it."""
    host = group.far[box]
    about: dict[str, Any] = {
        "number": group.number,
        "first": group.first,
        "size": group.size,
        "places": group.places,
        "box": box,
        "segment": {
            **{name: value for name, value in buffers.items() if name != "begun_ns"},
            "disable": mask,
            **settings,
        },
    }
    if "begun_ns" in buffers:  # another machine has another monotonic clock
        about["begun_ns"] = time.time_ns() - (time.monotonic_ns() - buffers["begun_ns"])
    host.box["groups"].append(about)
    host.far.segments[group.number] = RemoteSegment(group.size, host.far, settings["trace_events"])
    return host.far.segments[group.number]


def same_sizes(segments: "Any", size: int, mask: int, buffers: "dict[str, Any]") -> "dict[str, Any]":
    """Return the sizes that this machine would choose, for all boxes, whatever memory theirs have."""
    found = segments.plan(size, disable=mask, **buffers)
    return {**{name: found[name] for name in _SIZES}, **buffers}


# ---- the launcher's end


class RemoteForkClient(ForkClient):
    """A box elsewhere, presented as a fork server of this machine. Nodes are known by index there, too."""

    def __init__(self, plans: "list[Plan]") -> None:
        """`plans`: the programs of one box."""
        self._plans = plans
        self._host: Host = plans[0].host  # type: ignore[assignment]
        self._indices = sorted(index for plan in plans for index in plan.indices)
        self._exited: set[int] = set()
        self._group = Group(0)  # the box knows nodes by index, too: as ranks of one group
        self._spawn(self._host.relay, ["-s"] if sys.flags.no_user_site else [], None, dict(os.environ))

    def place(self, plans: "list[Plan]") -> None:
        self._plans = plans

    @property
    def plans(self) -> "list[Plan]":
        return self._plans

    @property
    def indices(self) -> "list[int]":
        return self._indices

    @property
    def host(self) -> Host:
        return self._host

    @property
    def far(self) -> RemoteBox:
        """The answers of the box."""
        return self._host.far

    def run(
        self,
        groups: "list[Group]",
        reports: "list[int]",
        where: int,
        cpus: "list[tuple[int, ...]] | None",
        stats: bool,
    ) -> None:
        """Describe the run. Reports of nodes there come as messages."""
        host = self._host
        host.box.update(bind=cpus is not None, stats=stats)
        for plan, about in zip(self._plans, host.box["programs"], strict=True):
            about.update(debugged=sorted(plan.debugged), debug=plan.debug)
        self._send(("run", host.about()), host.descriptors)
        self._is_traced = host.box["is_traced"]
        if self._is_traced:  # it answers before its nodes begin: this gives a first reading of its clock
            self.ask(CLOCK)

    def receive(self) -> "tuple | None":
        message = super().receive()
        if message is None:
            return None
        self._check(*message)
        if message[0] == "ready" and self._is_traced:
            self.ask(CLOCK)
        elif message[0] == "noted":
            self.far.noted(message[1])
        elif message[0] == "answer" and isinstance(message[-1], dict):
            self.far.answer(message[1], message[-1])
        elif message[0] == "trace":  # of the only group
            for segment in self.far.segments.values():
                segment.add_trace(*message[1:])
        return message

    def _check(self, verb: str, *rest: "Any") -> None:
        """Check that a box reports only its own nodes and groups, and the end of each once. Raises `ValueError`."""
        told = (
            rest[0] if verb in ("started", "unstarted") else rest[:1] if verb in ("exited", "report") else ()
        )
        if any(type(index) is not int or index not in self._indices for index in told):
            raise ValueError(f"{verb}: {rest}")
        if verb == "deadlock" and rest[0] not in self.far.segments:
            raise ValueError(f"{verb}: {rest}")
        if verb == "exited":
            index, status = rest[:2]
            if index in self._exited or type(status) is not int or not 0 <= status <= 0xFFFF:
                raise ValueError(f"{verb}: {rest}")
            self._exited.add(index)

    def ask(self, question: str, indices: "Sequence[int]" = ()) -> None:
        """Ask its box, see `box_proxy`. The answer comes as a message. Questions about its clock are not counted."""
        if question == CLOCK and not self.far.ask_clock():
            return
        self.far.asked += question != CLOCK
        self._send(("ask", self.far.asked, question, list(indices)))

    def fetch(self, files: int, size: int) -> None:
        """Fetch the files that its box has listed, at most so many and so many bytes; the answer is "fetched"."""
        self._send(("fetch", files, size))

    def stop_fetching(self) -> None:
        """Fetch no more of them; "fetched" comes now."""
        self._send(("stop_fetching",))

    def call(self, secret: bytes) -> None:
        """Begin a call of a cluster, as its only group is described; the answer is "called"."""
        (about,) = self._host.box["groups"]
        self._is_traced = bool(about["segment"]["trace_events"])
        self._send(("call", {"group": about, "is_traced": self._is_traced}, secret))
        if self._is_traced:
            self.ask(CLOCK)

    def uncall(self) -> None:
        """End it; the answer is "uncalled", after all that the box has to report."""
        self._send(("uncall",))

    def abandon(self) -> None:
        """Give its box up, which has ended: end the command that reaches it, which has not noticed."""
        self._send(("abandon",))

    def mark(self, rank: int, code: int) -> None:
        """Mark one of its nodes as finished, or as failing with this exit code."""
        self._send(("mark", rank, code))


def _far(groups: "list[Group]") -> "list[Host]":
    """Return the boxes on other machines, in the order of the command line."""
    found = {host.box["number"]: host for group in groups for host in group.far.values()}
    return [host for _number, host in sorted(found.items())]


def tell(
    groups: "list[Group]",
    transports: "TransportProcesses | None",
    listen: "str | None",
    link: "MpiLink | None" = None,
) -> None:
    """Send the boxes the server's address and their secrets. Log the address on which it listens."""
    said = set()
    for host in _far(groups):
        if transports is not None:
            host.take_jobs(transports.jobs)
            for about in host.box["groups"] if link is not None else ():
                about["via"] = link.names[about["number"]]  # type: ignore[union-attr]
            address, port = transports.address
            if address == "0.0.0.0":
                address = _reaching(host.name)
            host.port = port
            host.box.update(address=[address, port])
            said.add(f"{address}:{port}")
    if listen is not None and said and transports is not None:
        how = (
            "it stays on this machine"
            if transports.address[0] == loopback.LOOPBACK
            else "connections are encrypted"
        )
        os.write(2, f"spcomm: boxes connect to {', '.join(sorted(said))}; {how}\n".encode())


def listen(options: "Options", groups: "list[Group]") -> "str | None":
    """Return the address on which the server listens; None: this machine only. Raises `UsageError`."""
    far = _far(groups)
    is_apart = any(group.boxes > 1 for group in groups)
    if not far or not is_apart or (tunnels(options) and options.listen is None):
        return None
    if options.listen is not None:
        return options.listen
    return _reaching(far[0].name)


def _reaching(host: str) -> str:
    """Return the address of this machine from which the route to a host starts."""
    import socket

    name = host.rpartition("@")[2]
    try:
        found = socket.getaddrinfo(name, 9, socket.AF_INET, socket.SOCK_DGRAM)
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        probe.connect(found[0][4])  # sends nothing
        address = probe.getsockname()[0]
        probe.close()
    except OSError as error:
        raise UsageError(
            f"spcomm run: which address of this machine reaches host {name}? ({why(error)}); give it: --listen ADDRESS"
        ) from None
    return address
