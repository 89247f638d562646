# SPDX-License-Identifier: MIT
"""Options about other machines: hosts, rooms and servers. Their values, and the valid combinations.

Imported only if one of these options is given.
"""

from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.values import MOST_BOXES, MOST_NODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm.launch.cmdline.options import Options

_EXAMPLE = "--host alpha:4,beta:4"


def parse(name: str, text: str) -> "list[tuple[str, int]]":
    """Read `a:4,b:4`: hosts, and the number of nodes that fit on each (default: 1)."""
    return [_entry(f"{name} {text}", *item.strip().rpartition(":")) for item in text.split(",")]


def read(name: str, path: str) -> "list[tuple[str, int]]":
    """Read a file with a host on each line: `alpha slots=4`, `alpha:4` or `alpha`; `#` begins a comment."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.partition("#")[0].split() for line in file]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"spcomm run: {name} {path}: cannot be read ({why(error)})") from None
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


def check_hosts(options: "Options") -> None:
    """Check the options about hosts together."""
    if options.hosts is None:
        for field, option in (("ssh", "--ssh"), ("listen", "--listen"), ("tunnel", "--tunnel")):
            if getattr(options, field) is not None:
                if field == "listen" and (options.boxes is not None or options.placing is not None):
                    continue
                raise UsageError(f"spcomm run: {option} is about other machines, as in {_EXAMPLE}")
        return
    for field, option in (("boxes", "--boxes"), ("placing", "--map"), ("debug", "--debug")):
        if getattr(options, field) is not None:
            also = "" if field == "debug" else "; each host is a box"
            raise UsageError(
                f"spcomm run: --host and {option} do not go together{also}; leave one of them out"
            )
    if options.route == "direct" and tunnels(options):
        raise UsageError(
            "spcomm run: --route direct: messages between hosts go through their ssh, which connects each with this "
            "machine alone; add --tunnel none, or leave --route out"
        )
    if len(options.parts) > 1:
        raise UsageError("spcomm run: --host starts one program; leave out the others")
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
    """Distribute the number of nodes of -n, one host after the other."""
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


def check_room(options: "Options") -> None:
    """Check the options about rooms and servers together."""
    if options.room is not None and options.server is not None:
        raise UsageError("spcomm run: --room and --server: a room has its server; leave --server out")
    if options.room is None and options.members is not None:
        raise UsageError(f"spcomm run: --members {options.members} is about a room, as in --room alpha")
    name = "--room" if options.room is not None else "--server"
    if "link_timeout" in options.said:
        raise UsageError(f"spcomm run: --link-timeout and {name}: give --link-timeout to spcomm serve")
    wrong = ["hosts", "ssh", "tunnel", "listen"]
    if options.room is not None:
        wrong += ["boxes", "placing", "debug"]
        if len(options.parts) > 1:
            raise UsageError("spcomm run: --room starts one program; leave out the others")
    elif options.boxes is None and options.placing is None:
        raise UsageError(
            f"spcomm run: --server {options.server} serves runs of several boxes, as with --boxes 2"
        )
    for field in wrong:
        if getattr(options, field) is not None:
            option = {"hosts": "--host", "placing": "--map"}.get(field, f"--{field}")
            raise UsageError(f"spcomm run: {name} and {option} do not go together; leave one of them out")


def tunnels(options: "Options") -> bool:
    """Whether boxes reach this machine through their ssh."""
    return options.tunnel == "ssh" if options.tunnel is not None else options.listen is None


def why(error: Exception) -> str:
    """Return the system's reason."""
    return getattr(error, "strerror", None) or str(error)
