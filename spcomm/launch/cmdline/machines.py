# SPDX-License-Identifier: MIT
"""Options about other machines (hosts, rooms and servers): their values, and the valid combinations.

Imported only if one of these options is given, or in a job.
"""

from typing import TYPE_CHECKING

from spcomm.launch.base.record import replace
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.boxes import check_length, dealt, spelt
from spcomm.launch.cmdline.values import MOST_BOXES, MOST_NODES
from spcomm.text import counted

if TYPE_CHECKING:
    from spcomm.launch.cmdline.options import Options, Part

_HOSTFILE_MOST = 1_000_000  # characters
_EXAMPLE = "--host alpha:4,beta:4"
HERE = "localhost"  # needs no ssh; the host of a program without --host


def parse(name: str, text: str) -> "list[tuple[str, int | None]]":
    """Read `a:4,b`: hosts, and the number of nodes that fit on each; None: not given."""
    return [_entry(f"{name} {text}", *item.strip().rpartition(":")) for item in text.split(",")]


def read(name: str, path: str) -> "list[tuple[str, int | None]]":
    """Read a file with a host on each line: `alpha slots=4`, `alpha:4` or `alpha`; `#` begins a comment."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_HOSTFILE_MOST + 1)  # a device may have no end
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"spcomm run: {name} {path}: cannot be read ({why(error)})") from None
    if len(text) > _HOSTFILE_MOST:
        raise UsageError(
            f"spcomm run: {name} {path}: is not a file of hosts: it has over {_HOSTFILE_MOST} characters"
        )
    lines = [line.partition("#")[0].split() for line in text.split("\n")]
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


def _entry(where: str, host: str, colon: str, slots: str) -> "tuple[str, int | None]":
    if not colon:
        host, slots = slots, ""
    if not host or host.startswith("-") or any(letter.isspace() for letter in host):
        raise UsageError(f"spcomm run: {where}: a host is a name or an address, as in {_EXAMPLE}")
    if not colon:
        return host, None
    if not (slots.isascii() and slots.isdecimal() and len(slots) < 6 and 1 <= int(slots) <= MOST_NODES):
        raise UsageError(
            f"spcomm run: {where}: {host}:{slots}: a host has from 1 to {MOST_NODES} nodes, as in {_EXAMPLE}"
        )
    return host, int(slots)


def on_hosts(options: "Options") -> "Options":
    """Check the options about hosts together. Add the hosts of the run's boxes, and the boxes of each program's nodes.

    A host that several programs name is one box; a program that names a host twice has two boxes there.
    """
    if not options.job_hosts and all(part.hosts is None for part in options.parts):
        for field in ("ssh", "reach", "listen", "tunnel"):
            if getattr(options, field) is not None:
                if field == "listen" and (options.boxes is not None or options.placing is not None):
                    continue
                raise UsageError(f"spcomm run: --{field} is about other machines, as in {_EXAMPLE}")
        return options
    if options.boxes is not None:
        raise UsageError(
            "spcomm run: --host and --boxes do not go together; each host is a box; leave one of them out"
        )
    if options.route == "direct" and tunnels(options):
        raise UsageError(
            "spcomm run: --route direct: messages between hosts go through their ssh, which connects each with this "
            "machine alone; add --tunnel none, or leave --route out"
        )
    if options.ssh is not None and options.reach is not None:
        raise UsageError("spcomm run: --ssh and --reach: both reach the hosts; leave one of them out")
    if options.reach is not None and options.tunnel == "ssh":
        raise UsageError(
            f"spcomm run: --tunnel ssh: only ssh has tunnels, and {options.reach.partition(' ')[0]} reaches the hosts; "
            "leave --tunnel out"
        )
    names: list[str] = []
    hosts = [_numbered(options.job_hosts or part.hosts or [(HERE, None)], names) for part in options.parts]
    if isinstance(options.placing, tuple):
        placed = _boxes_of_map(options.parts, options.placing, hosts, names)
    elif options.job_hosts:
        placed = _boxes_in_job(options, hosts[0])
    else:
        is_cyclic = options.placing == "cyclic"
        pairs = zip(options.parts, hosts, strict=True)
        placed = [in_turn(_filled(some, part.nodes), is_cyclic) for part, some in pairs]
    used = sorted({box for boxes in placed for box in boxes})
    if len(used) > MOST_BOXES:
        raise UsageError(
            f"spcomm run: {len(used)} hosts: a run has at most {MOST_BOXES}, each of which is a box; use fewer of them"
        )
    parts = in_boxes(options.parts, [[used.index(box) for box in boxes] for boxes in placed])
    return replace(options, parts=parts, hosts=[names[box] for box in used])


def in_boxes(parts: "list[Part]", placed: "list[list[int]]") -> "list[Part]":
    """Return the programs with their nodes in these boxes."""
    pairs = zip(parts, placed, strict=True)
    return [replace(part, nodes=len(boxes), boxes=boxes) for part, boxes in pairs]


def _numbered(hosts: "list[tuple[str, int | None]]", names: "list[str]") -> "list[tuple[int, int | None]]":
    """Return the box of each host, and the number of nodes that fit on it; add new boxes to `names`."""
    found: list[tuple[int, int | None]] = []
    for host, slots in hosts:
        taken = [box for box, _slots in found]
        box = next((at for at, name in enumerate(names) if name == host and at not in taken), len(names))
        if box == len(names):
            names.append(host)
        found.append((box, slots))
    return found


def _boxes_in_job(options: "Options", hosts: "list[tuple[int, int | None]]") -> "list[list[int]]":
    """Return the boxes of each program's nodes, in the order of the command line, on the machines of a job."""
    given = [part.nodes for part in options.parts if part.nodes is not None]
    room = sum(slots or 1 for _box, slots in hosts)
    if given and sum(given) > room:
        raise UsageError(
            f"spcomm run: -n {sum(given)}: the machines of this job have room for {room}; let the scheduler give it "
            "more tasks, or leave -n out"
        )
    boxes = in_turn(_filled(hosts, sum(given) if given else None), options.placing == "cyclic")
    return dealt(boxes, given or [len(boxes)])


def _filled(hosts: "list[tuple[int, int | None]]", nodes: "int | None") -> "list[tuple[int, int]]":
    """Distribute the nodes of -n, one host after the other. Hosts without a number share evenly what others leave."""
    if nodes is None:
        return [(box, slots or 1) for box, slots in hosts]
    room = sum(slots or 0 for _box, slots in hosts)
    open_ended = [box for box, slots in hosts if slots is None]
    if nodes > room and not open_ended:
        raise UsageError(
            f"spcomm run: -n {nodes}: the hosts have room for {room}; give more (alpha:4), or leave -n out"
        )
    each, more = divmod(max(0, nodes - room), len(open_ended) or 1)
    found = []
    for box, slots in hosts:
        if slots is None:
            found.append((box, each + (open_ended.index(box) < more)))
        else:
            found.append((box, min(slots, nodes)))
            nodes -= found[-1][1]
    return found


def in_turn(counts: "list[tuple[int, int]]", is_cyclic: bool) -> "list[int]":
    """Return the box of each node: one host after the other, or a node on each host in turn while it has room."""
    if not is_cyclic:
        return [box for box, count in counts for _node in range(count)]
    turns = [(turn, at) for at, (_box, count) in enumerate(counts) for turn in range(count)]
    return [counts[at][0] for _turn, at in sorted(turns)]


def _boxes_of_map(
    parts: "list[Part]",
    placing: "tuple[int, ...]",
    hosts: "list[list[tuple[int, int | None]]]",
    names: "list[str]",
) -> "list[list[int]]":
    """Return the box of each node as --map gives it. Raises `UsageError` for one that is on no host of its program."""
    pairs = zip(parts, hosts, strict=True)
    counts = [part.nodes or sum(slots or 1 for _box, slots in some) for part, some in pairs]
    if len(parts) == 1 and parts[0].nodes is None:
        counts = [len(placing)]
    check_length(placing, sum(counts))
    placed = dealt(list(placing), counts)
    given = f"spcomm run: --map {spelt(placing)}"
    if max(placing) >= len(names):
        raise UsageError(
            f"{given}: names box {max(placing)}, and the hosts are boxes 0 to {len(names) - 1} ({', '.join(names)})"
        )
    for part, some, boxes in zip(parts, hosts, placed, strict=True):
        room = dict(some)
        for box in sorted(set(boxes)):
            count = boxes.count(box)
            if box not in room:
                own = ", ".join(names[at] for at in room)
                raise UsageError(
                    f"{given}: puts {counted(count, 'node')} of {part.name} in box {box}, on {names[box]}; it runs on "
                    f"{own}: give {names[box]} to its --host, or give its nodes other boxes"
                )
            if count > (room[box] or count):
                raise UsageError(
                    f"{given}: puts {counted(count, 'node')} of {part.name} in box {box}, on {names[box]}, which has "
                    f"room for {room[box]}; give it more ({names[box]}:{count})"
                )
    return placed


def in_room(options: "Options") -> "Options":
    """Check the options about rooms and servers together. Add the number of nodes that --map gives."""
    if options.room is not None and options.server is not None:
        raise UsageError("spcomm run: --room and --server: a room has its server; leave --server out")
    if options.room is None and options.members is not None:
        raise UsageError(f"spcomm run: --members {options.members} is about a room, as in --room alpha")
    if options.room is None and options.fetch is not None:
        raise UsageError(
            f"spcomm run: --fetch {options.fetch} brings files from the members of a room, as in --room alpha; "
            "elsewhere nodes write them to your own folder of that machine"
        )
    if options.fetch is None and options.fetch_limit is not None:
        raise UsageError("spcomm run: --fetch-limit is about --fetch, which was not given")
    name = "--room" if options.room is not None else "--server"
    if "link_timeout" in options.said:
        raise UsageError(f"spcomm run: --link-timeout and {name}: give --link-timeout to spcomm serve")
    wrong = ["ssh", "tunnel", "listen"]
    if options.room is not None:
        wrong.append("boxes")
    elif options.boxes is None and options.placing is None:
        raise UsageError(
            f"spcomm run: --server {options.server} serves runs of several boxes, as with --boxes 2"
        )
    if any(part.hosts is not None for part in options.parts):
        raise UsageError(f"spcomm run: {name} and --host do not go together; leave one of them out")
    parts = options.parts
    if options.room is not None and isinstance(options.placing, tuple):
        if len(parts) == 1:
            parts = [replace(parts[0], nodes=parts[0].nodes or len(options.placing))]
        check_length(options.placing, sum(part.nodes or 0 for part in parts))
    for field in wrong:
        if getattr(options, field) is not None:
            why = "; each member is a box" if field == "boxes" else ""
            raise UsageError(
                f"spcomm run: {name} and --{field} do not go together{why}; leave one of them out"
            )
    return replace(options, parts=parts)


def check_link(options: "Options") -> None:
    """Check --link and --mpi together with the other options."""
    if options.mpi is not None and options.link != "mpi":
        raise UsageError(f"spcomm run: --mpi {options.mpi} starts the gateways of --link mpi; add that")
    if options.link != "mpi":
        return
    if options.room is not None or options.server is not None:
        raise UsageError(
            "spcomm run: --link mpi: the boxes of --room and --server have no MPI in common; leave it out"
        )
    if options.boxes is None and options.placing is None and not options.hosts:
        raise UsageError("spcomm run: --link mpi is about several boxes, as in --boxes 2")
    if options.route == "relay":
        raise UsageError(
            "spcomm run: --link mpi and --route relay: MPI connects each gateway with all others"
        )


def tunnels(options: "Options") -> bool:
    """Whether boxes reach this machine through their ssh."""
    if options.tunnel is not None:
        return options.tunnel == "ssh"
    return options.listen is None and options.reach is None


def why(error: Exception) -> str:
    """Return the system's reason."""
    return getattr(error, "strerror", None) or str(error)
