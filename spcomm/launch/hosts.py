# SPDX-License-Identifier: MIT
"""`--host` and what belongs to it: boxes on other machines, as the launcher sees them.

A program becomes one plan for each box. On a host that ssh reaches it is started by `relay`, which to the launcher
is a warm process like any other, and `box` does there what the launcher does here. Imported only where hosts are
given.
"""

import copy
import os
import shlex
import sys
import time

from spcomm.launch.far import CLOCK, FarSegment
from spcomm.launch.starter import Starter
from spcomm.launch.values import MOST_BOXES, MOST_NODES, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from spcomm.launch.carriers import Carriers
    from spcomm.launch.groups import Group
    from spcomm.launch.options import Options, Part
    from spcomm.launch.plan import Plan

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=6"
_SIZES = ("slots", "ring", "arena", "scratch", "queue_limit")
_EXAMPLE = "--host alpha:4,beta:4"


# ---- options


def parse(name: str, text: str) -> "list[tuple[str, int]]":
    """`a:4,b:4`: hosts, and how many nodes each has room for (default: 1)."""
    return [_entry(f"{name} {text}", *item.strip().rpartition(":")) for item in text.split(",")]


def read(name: str, path: str) -> "list[tuple[str, int]]":
    """A file with a host on each line: `alpha slots=4`, `alpha:4` or `alpha`; `#` begins a comment."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.partition("#")[0].split() for line in file]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"spcomm run: {name} {path}: cannot be read ({_why(error)})") from None
    found = []
    for number, words in enumerate(lines, 1):
        where = f"{name} {path}, line {number}"
        slots = [word[6:] for word in words[1:] if word.startswith("slots=")]
        if len(words) > 2 or len(slots) != len(words[1:]):
            raise UsageError(f"spcomm run: {where}: {' '.join(words)}: a line is a host, as in alpha slots=4")
        if slots:
            found.append(_entry(where, words[0], ":", slots[0]))
        elif words:
            found.append(_entry(where, *words[0].rpartition(":")))
    if not found:
        raise UsageError(f"spcomm run: {name} {path}: names no host")
    return found


def _entry(where: str, host: str, colon: str, slots: str) -> "tuple[str, int]":
    if not colon:
        host, slots = slots, "1"
    if not host or host.startswith("-") or any(letter.isspace() for letter in host):
        raise UsageError(f"spcomm run: {where}: a host is a name or an address, as in {_EXAMPLE}")
    if not (slots.isascii() and slots.isdecimal() and len(slots) < 6 and 1 <= int(slots) <= MOST_NODES):
        raise UsageError(
            f"spcomm run: {where}: {host}:{slots}: a host has from 1 to {MOST_NODES} nodes, as in {_EXAMPLE}"
        )
    return host, int(slots)


def check(options: "Options") -> None:
    """What the options say together."""
    if options.hosts is None:
        for field, option in (("ssh", "--ssh"), ("listen", "--listen"), ("tunnel", "--tunnel")):
            if getattr(options, field) is not None:
                raise UsageError(f"spcomm run: {option} is about other machines, as in {_EXAMPLE}")
        return
    for field, option in (("boxes", "--boxes"), ("placing", "--map"), ("debug", "--debug")):
        if getattr(options, field) is not None:
            also = "" if field == "debug" else "; each host is a box"
            raise UsageError(
                f"spcomm run: --host and {option} do not go together{also}; leave one of them out"
            )
    if options.route == "direct" and _tunnels(options):
        raise UsageError(
            "spcomm run: --route direct: messages between hosts go through their ssh, which connects each with this "
            "machine alone; add --tunnel none, or leave --route out"
        )
    if len(options.parts) > 1:
        raise UsageError("spcomm run: --host starts one program so far; leave out the others")
    options.hosts = _filled(options.hosts, options.parts[0].nodes)
    if len(options.hosts) > MOST_BOXES:
        raise UsageError(
            f"spcomm run: --host: names {len(options.hosts)} hosts; there are at most {MOST_BOXES}"
        )
    options.parts[0].nodes = sum(slots for _host, slots in options.hosts)
    if options.parts[0].nodes > MOST_NODES:
        raise UsageError(
            f"spcomm run: --host: room for {options.parts[0].nodes} nodes; a run has at most {MOST_NODES}"
        )


def _filled(hosts: "list[tuple[str, int]]", nodes: "int | None") -> "list[tuple[str, int]]":
    """As many nodes as -n says, one host after the other."""
    if nodes is None:
        return hosts
    room = sum(slots for _host, slots in hosts)
    if nodes > room:
        raise UsageError(
            f"spcomm run: -n {nodes}: the hosts have room for {room}; give more (alpha:4), or leave -n out"
        )
    found = []
    for host, slots in hosts:
        if nodes:
            found.append((host, min(slots, nodes)))
            nodes -= found[-1][1]
    return found


# ---- from one program to one for each box


class Host:
    """Where a box is that is not here, and how it is reached."""

    relay = "relay"  # the module that does

    def __init__(self, name: str, options: "Options", bare: bool) -> None:
        self.name = name
        self.ssh = shlex.split(options.ssh or SSH)
        self.tunnel = _tunnels(options)
        self.box: dict[str, Any] = {"bare": bare, "strict": options.strict}  # what the box there is told
        self.secret = b""
        self.port = 0
        self.descriptors: tuple[int, ...] = ()  # what the relay needs besides

    def about(self) -> "dict[str, Any]":
        """What the relay is told."""
        return {
            "host": self.name,
            "command": self.command(),
            "secret": self.secret,
            "box": self.box,
            "tunnel": self.tunnel and bool(self.port),
        }

    def command(self) -> "list[str]":
        """What starts the box."""
        tunnel = ["-o", "ExitOnForwardFailure=yes", "-R", f"127.0.0.1:0:127.0.0.1:{self.port}"]
        box = f"exec {shlex.quote(sys.executable)} -m spcomm box"
        return [*self.ssh, *(tunnel if self.tunnel and self.port else []), self.name, box]


def _tunnels(options: "Options") -> bool:
    return options.tunnel == "ssh" if options.tunnel is not None else options.listen is None


def _is_here(name: str) -> bool:
    return name == "localhost" or name == os.uname().nodename


def spread(options: "Options", plan: "Plan", make: "type[Host] | None" = None) -> "list[Plan]":
    """A plan for each box. `make`: none is on this machine, and such a host is each."""
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
    """What a box has to know of the program."""
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
    """Tell the group where its nodes are, and which boxes are not here."""
    group = groups[0]
    if len(plans) > 1:
        group.places = [plan.box or 0 for plan in plans for _node in range(plan.nodes)]
    group.far = {plan.box or 0: plan.host for plan in plans if plan.host is not None}


def busy(plans: "list[Plan]") -> int:
    """How many processes of the run this machine has."""
    here = sum(plan.nodes for plan in plans if plan.host is None)
    return here + sum(plan.host is None for plan in plans) + (len(plans) > 1)


def far_segment(
    group: "Group", box: int, mask: int, options: "Options", buffers: "dict[str, Any]"
) -> FarSegment:
    """What stands for a box's memory here; the box is told how to make it."""
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
    return FarSegment(group.size, group.far[box].name, options.recorded)


def same_sizes(agent: "Any", size: int, mask: int, buffers: "dict[str, Any]") -> "dict[str, Any]":
    """What this machine would choose, for all boxes, whatever memory theirs have."""
    found = agent.plan(size, disable=mask, **buffers)
    return {**{name: found[name] for name in _SIZES}, **buffers}


# ---- the launcher's end


def starter(plan: "Plan", where_signal: int, limit: "tuple[int, int] | None") -> Starter:
    """Who starts the nodes of a plan."""
    return Starter(plan, where_signal, limit) if plan.host is None else FarStarter(plan)


class FarStarter(Starter):
    """A box elsewhere, as if it were a warm process of this machine."""

    def __init__(self, plan: "Plan") -> None:
        self.plan = plan
        self._spawn(plan.host.relay, ["-s"] if sys.flags.no_user_site else [], None, dict(os.environ))

    def run(self, group: "Group", report: int, where: int, cpus: "list[int] | None", stats: bool) -> None:
        self._first = group.first
        host = self.plan.host
        self.far: FarSegment = group.segments[self.plan.box or 0]
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
        if self._is_traced:  # it answers before its nodes begin: at least this is known of its clock
            self.ask_clock()

    def receive(self) -> "tuple | None":
        message = super().receive()
        if message is not None and message[0] == "ready" and self._is_traced:
            self.ask_clock()
        elif message is not None and message[0] == "noted" and isinstance(message[-1], dict):
            self.far.known = message[-1]
        elif message is not None and message[0] == "answer" and isinstance(message[-1], dict):
            self.far.answer(message[1], message[-1])
        elif message is not None and message[0] == "trace":
            self.far.add_trace(*message[1:])
        return message

    @property
    def first(self) -> int:
        """The index of node 0 of its group."""
        return self._first

    def ask_clock(self) -> None:
        """See `far.clock`; not counted among the questions."""
        if self.far.ask_clock():
            self._send(("ask", self.far.asked, CLOCK, []))

    def ask(self, question: str, ranks: "list[int]") -> None:
        """See `far`; the answer comes as a message."""
        self.far.asked += 1
        self._send(("ask", self.far.asked, question, ranks))


def tell(plans: "list[Plan]", carriers: "Carriers | None", listen: "str | None") -> None:
    """Tell the boxes where the server is, and the secret of the run. Say at which address it listens."""
    said = set()
    for plan in plans:
        if plan.host is not None and carriers is not None:
            host, (address, port) = plan.host, carriers.address
            if address == "0.0.0.0":
                address = _reaching(host.name)
            host.secret, host.port = carriers.secret, port
            host.box.update(job=carriers.job, address=[address, port])
            said.add(f"{address}:{port}")
    if listen is not None and said:
        text = f"spcomm: boxes connect to {', '.join(sorted(said))}; what they send is authenticated, not encrypted\n"
        os.write(2, text.encode())


def listen(options: "Options", plans: "list[Plan]") -> "str | None":
    """At which address the server listens; None: this machine only. Raises `UsageError`."""
    far = [plan.host for plan in plans if plan.host is not None]
    if not far or (_tunnels(options) and options.listen is None):
        return None
    if options.listen is not None:
        return options.listen
    return _reaching(far[0].name)


def _reaching(host: str) -> str:
    """The address of this machine with which the way to a host begins."""
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
            f"spcomm run: which address of this machine reaches host {name}? ({_why(error)}); say it: --listen ADDRESS"
        ) from None
    return address


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
