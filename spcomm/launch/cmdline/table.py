# SPDX-License-Identifier: MIT
"""The table of the options of `spcomm run`, and which of them are about the run as a whole."""

from spcomm.launch.cmdline import ranks, values


def _hosts(name: str, text: str) -> "list[tuple[str, int]]":
    """Hosts, and how many nodes each has room for: in a list or in a file."""
    from spcomm.launch.cmdline import machines

    return machines.parse(name, text) if name == "--host" else machines.read(name, text)


# option: (how to read its value or None, field, the value it sets or what to call its value)
TABLE = {
    "-n": (values.nodes, "nodes", "N"),
    "-np": (values.nodes, "nodes", "N"),
    "--group": (values.group, "group", "ID"),
    "--start": (values.start, "start", "fork|exec"),
    "--preload": (values.modules, "preload", "MODULES"),
    "-m": (values.module, "module", "MODULE"),
    "-x": (values.variable, "exports", "VAR[=VALUE]"),
    "--env": (values.environment, "environment", "all|none"),
    "--wdir": (values.folder, "folder", "FOLDER"),
    "--boxes": (values.boxes, "boxes", "B"),
    "--map": (values.placing, "placing", "block|cyclic|BOX,BOX,…"),
    "--host": (_hosts, "hosts", "HOST:N,HOST:N,…"),
    "--hostfile": (_hosts, "hosts", "FILE"),
    "--ssh": (values.shell_words, "ssh", "COMMAND"),
    "--tunnel": (values.tunnel, "tunnel", "ssh|none"),
    "--listen": (values.words, "listen", "ADDRESS"),
    "--room": (values.words, "room", "HOST[:PORT]"),
    "--members": (values.members, "members", "N"),
    "--server": (values.words, "server", "HOST[:PORT]"),
    "--route": (values.route, "route", "relay|direct"),
    "--link-timeout": (values.link_timeout, "link_timeout", "SECONDS"),
    "-l": (None, "label", True),
    "--label": (None, "label", True),
    "--tag-output": (None, "label", True),
    "--no-label": (None, "label", False),
    "--color": (None, "color", True),
    "--no-color": (None, "color", False),
    "--show": (ranks.ranks, "show", "RANKS"),
    "--output": (values.folder, "output", "FOLDER"),
    "--window": (ranks.ranks, "window", "RANKS"),
    "--stdin": (ranks.ranks, "stdin", "RANKS"),
    "--bind-to": (values.binding, "bind_to", "core|none"),
    "--report-bindings": (None, "report_bindings", True),
    "--timeout": (values.seconds, "timeout", "SECONDS"),
    "--grace": (values.seconds, "grace", "SECONDS"),
    "--stall": (values.seconds_or_never, "stall", "SECONDS"),
    "--close-timeout": (values.seconds_or_never, "close_timeout", "SECONDS"),
    "--strict": (None, "strict", True),
    "--stats": (None, "stats", True),
    "--watch": (None, "watch", True),
    "--trace": (values.file, "trace", "FILE"),
    "--virtual": (None, "virtual", True),
    "--trace-events": (values.events, "trace_events", "N"),
    "--debug": (ranks.debug, "debug", "[TOOL:]RANKS"),
    "--perturb": (None, "perturb", True),
    "--seed": (values.seed, "seed", "NUMBER"),
    "--rendezvous": (values.rendezvous, "rendezvous", "SIZE"),
    "--slots": (values.count, "slots", "N"),
    "--ring": (values.size, "ring", "SIZE"),
    "--arena": (values.size, "arena", "SIZE"),
    "--queue-limit": (values.size, "queue_limit", "SIZE"),
    "--fanin": (values.count, "fanin", "N"),
    "--prefault": (None, "prefault", True),
    "--oversubscribe": (None, None, None),
    "--allow-run-as-root": (None, None, None),
    "--use-hwthread-cpus": (None, None, None),
}

BUFFERS = ("slots", "ring", "arena", "queue_limit", "fanin")

# Fields that are about the run as a whole, with any of its programs; the buffers are, too.
WHOLE = frozenset(
    "boxes placing hosts ssh tunnel listen room members server route link_timeout "
    "label color show output window stdin bind_to report_bindings timeout grace stall close_timeout strict stats watch "
    "debug trace virtual trace_events perturb seed rendezvous prefault".split()
)

# The value of an option that may be given without one; with one it is written with `=`, since the next word is
# the program.
ALONE = {"--debug": "0"}
