# SPDX-License-Identifier: MIT
"""The options of `spcomm run`: how each is read, the field it sets, and its text in `spcomm run --help`."""

import os
from argparse import SUPPRESS, BooleanOptionalAction
from functools import partial

from spcomm.argument_parser import ArgumentParser, help_text, row_of
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline import ranks, values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def _hosts(name: str, text: str) -> "list[tuple[str, int | None]]":
    """Read hosts, with the number of nodes that fit on each: from a list or from a file."""
    from spcomm.launch.cmdline import machines

    return machines.parse(name, text) if name == "--host" else machines.read(name, text)


# (spellings; its value, if it has one, with a `=` where it may stand alone; field of `options.Part` or
# `options.Options`; how its value is read, or the action of an option without one; help). A field that is None: the
# option is accepted without effect.
_OF_A_PROGRAM = (
    ("-n, -np", "N", "nodes", values.whole(1, values.MOST_NODES, "the number of nodes", 4),
     "number of nodes, 1 to 1024 (default: the cores this process may use, or what a job of several machines has room "
     "for; required with several programs)"),
    ("--group", "ID", "group", values.whole(0, values.MOST_GROUP, "a group", 1),
     "the group its nodes belong to (default: 0). Programs of one group share its ranks, in the order of the command "
     "line; groups know nothing of each other"),
    ("-m", "MODULE", "module", values.module, "run a module, as python -m does"),
    ("-c", "CODE", "code", values.code, "run Python code, as python -c does"),
    ("--start", "fork|exec", "start", values.one_of({"fork": "from one fork server", "exec": "each by itself"}),
     "fork: all nodes from one process that has imported NumPy and spcomm once (default for Python on Linux); exec: "
     "each node starts by itself (default for executables)"),
    ("--preload", "MODULES", "preload", values.modules,
     "modules that this process imports before it forks, separated by commas (default: NumPy)"),
    ("-x", "VAR[=VALUE]", "exports", values.variable,
     "set a variable for its nodes; without a value: its value here. May be repeated"),
    ("--env", "all|none", "environment",
     values.one_of({"all": "the variables that are set here, and those of -x", "none": "only those of -x"}),
     "all: nodes inherit this environment (default); none: only the variables of -x"),
    ("--wdir", "FOLDER", "folder", values.folder, "run the program in that folder"),
    ("--host", "HOST:N,…", "hosts", _hosts,
     "run N nodes on each host, reached by ssh (default: one, or an even share of -n); each is a box. The program must "
     "be there, at the same path; localhost needs no ssh. With several programs, one without --host runs here"),
    ("--hostfile", "FILE", "hosts", _hosts, "the same from a file, with a line such as `alpha slots=4` for each"),
)  # fmt: skip
_WHERE_NODES_RUN = (
    ("--boxes", "B", "boxes", values.whole(1, values.MOST_BOXES, "the number of boxes", 2),
     "divide the nodes among B boxes, 1 to 64: on this machine they share no memory, as if each were a machine of its "
     "own, and reach each other over the network (default: 1, or the number in --map)"),
    ("--map", "block|cyclic|BOX,BOX,…", "placing", values.placing,
     "which node is in which box, or on which host. block: neighbours share one (default); cyclic: each box in turn; "
     "or the box of each node, as in 0,0,1,0,1"),
    ("--alone", None, "alone", None,
     "in a job of Slurm, PBS or LSF: run on this machine, as without a job (default: on all machines of the job)"),
    ("--ssh", "COMMAND", "ssh", values.shell_words,
     "the command that reaches a host (default: ssh -o BatchMode=yes, and timeouts)"),
    ("--reach", "COMMAND", "reach", values.reach,
     "a command other than ssh that reaches a host, as in 'rsh {host}'; {host} stands for its name (default in a job: "
     "srun or blaunch)"),
    ("--tunnel", "ssh|none", "tunnel",
     values.one_of({"ssh": "boxes reach this machine through their ssh", "none": "they connect to it"}),
     "messages between boxes go through ssh (default), or over connections of their own, also encrypted (none; the "
     "default in a job and with --reach)"),
    ("--listen", "ADDRESS", "listen", values.address,
     "without tunnel, or with --boxes: the address of this machine at which boxes connect (default: the one that "
     "reaches the first host; with --boxes 127.0.0.1). Needs spcomm[network]"),
    ("--room", "HOST[:PORT]", "room", values.words,
     "run on the members of a room (spcomm serve --room, spcomm join), which receive the folder of the program; -n is "
     "divided among them (default: all their cores). The code comes from $SPCOMM_CODE, or spcomm asks for it"),
    ("--members", "N", "members",
     values.whole(1, values.MOST_BOXES, "the number of members to wait for", 2),
     "with --room: wait until this many have joined, 1 to 64 (default: 1)"),
    ("--fetch", "FOLDER", "fetch", values.folder,
     "with --room: bring the files that nodes wrote, those of each member to a folder of its own in FOLDER, which must "
     "be new or empty (default: they are listed, and then lost)"),
    ("--fetch-limit", "SIZE", "fetch_limit", values.size,
     "bring at most this much of them, and 10,000 files; the rest is listed, and the exit code is 125 (default: 256M)"),
    ("--server", "HOST[:PORT]", "server", values.words,
     "with --boxes: boxes reach each other through an spcomm serve that already runs, which serves one run per "
     "--group at a time"),
    ("--route", "relay|direct", "route",
     values.one_of({"relay": "messages between boxes go through the server", "direct": "from box to box, where they "
                    "can"}),
     "messages between boxes go through the server, or from box to box where possible (default: direct for up to 8 "
     "boxes that reach each other)"),
    ("--link", "tcp|mpi", "link", values.one_of({"tcp": "connections of TCP", "mpi": "messages of another MPI"}),
     "messages from box to box go over TCP (default), or over an MPI that mpi4py and mpiexec find"),
    ("--mpi", "COMMAND", "mpi", values.words,
     "with --link mpi: the command that starts a process for each box; {n} is their number, {hosts} their hosts "
     "(default: mpiexec -n {n}; srun … in a Slurm job on several hosts)"),
    ("--link-timeout", "TIME", "link_timeout", values.link_timeout,
     "how long a box may be out of reach, 1 or more, before the run fails (default: 30)"),
)  # fmt: skip
_OUTPUT_AND_INPUT = (
    ("-l, --label", None, "label", BooleanOptionalAction,
     "put [3] before each line that node 3 prints, or do not (default: at a terminal); with several groups [1:3] for "
     "node 3 of group 1"),
    ("--color", None, "color", BooleanOptionalAction,
     "labels in a colour for each node (implies -l), or not (default: at a terminal, unless NO_COLOR is set or "
     "TERM is dumb)"),
    ("--show", "RANKS", "show", ranks.ranks,
     "the nodes whose output is shown (default: all without a window); tracebacks always are"),
    ("--output", "FOLDER", "output", values.folder,
     "also write the output of each node to FOLDER/node-3.txt, or group-1-node-3.txt"),
    ("--window", "RANKS", "window", ranks.ranks,
     "show the output of these nodes in windows of their own (needs tmux); with --debug each has a pane of one window, "
     "with its keyboard, and a pane below types to several"),
    ("--stdin", "RANKS", "stdin", ranks.ranks,
     "the nodes that get the standard input, each of them all of it (default: 0); for the others it is at its end. A "
     "single one reads a terminal itself"),
)  # fmt: skip
_PROCESSORS = (
    ("--bind-to", "core|none|CPUS/CPUS/…", "bind_to", values.binding,
     "bind each node to one core, in turn (default: none); or to these processors: 0-1/2,3 has node 0 on 0 and 1, node "
     "1 on 2 and 3, and begins again"),
    ("--report-bindings", None, "report_bindings", None, "print the core of each node"),
)  # fmt: skip
_TIME_LIMITS = (
    ("--timeout", "TIME", "timeout", values.seconds,
     "end the run after this time, report where each node was, exit with 124"),
    ("--grace", "TIME", "grace", values.seconds,
     "the time between SIGTERM and SIGKILL for nodes that must end (default: 3)"),
    ("--stall", "TIME", "stall", values.seconds_or_never,
     "warn of nodes that have waited this long for one that computes (default: 5, with --debug 0; 0: never)"),
    ("--close-timeout", "TIME", "close_timeout", values.seconds_or_never,
     "how long a Python node goes on sending at its end (default: 10, with --debug 0; 0: until everything is taken)"),
)  # fmt: skip
_MEASURING = (
    ("--stats", "=all", "stats", values.one_of({"nodes": "a line for each node", "all": "frames between boxes, too"}),
     "print a table at the end: time, messages, bytes and collectives of each node; all: and, with several boxes, the "
     "frames between them"),
    ("--watch", "=browser", "watch",
     values.one_of({"terminal": "a table below the output", "browser": "a page with the timeline"}),
     "show at the terminal what each node does while the program runs: state, call, line, messages per second; not "
     "with --debug, except for debugpy; browser: the same for one group, with the timeline as it grows, on a page in a "
     "browser on this machine, whose link is printed, and which at the end becomes the page of spcomm trace; records "
     "as --trace does"),
    ("--trace", "FILE", "trace", values.file,
     "record calls, messages and waits of all nodes; FILE opens in Perfetto, and with spcomm trace. A FILE that ends "
     "in .html becomes the page of spcomm trace --html"),
    ("--virtual", None, "virtual", None,
     "print at the end how long the run would take if only comm.work(cost) took time; not if it fails"),
    ("--trace-events", "N", "trace_events",
     values.whole(16, 1 << 24, "the number of events that each node keeps", 1000),
     "how many events each node keeps, the latest ones (default: 65536)"),
)  # fmt: skip
_FINDING_ERRORS = (
    ("--strict", None, "strict", None,
     "messages never received, barriers and requests left open at the end, and loops that poll in vain, are errors: "
     "exit code 1"),
    ("--debug", "=RANKS", "debug", ranks.debug,
     "run node 0, or these, in a debugger: pdb, or gdb for an executable; --debug=TOOL:RANKS for another: pdb or gdb "
     "(one node, which gets the standard input; several with --window), or debugpy (each prints the port at which it "
     "waits). No space before the value"),
    ("--perturb", None, "perturb", None,
     "delay calls at random, and change the order in which messages of different nodes arrive: programs that rely on "
     "luck fail now, not later"),
    ("--seed", "NUMBER", "seed", values.whole(0, 2**64 - 1, "a seed", 1),
     "the seed of --perturb (default: a new one each time, which is printed); the same seed makes the same choices"),
    ("--rendezvous", "SIZE", "rendezvous", values.rendezvous,
     "sends of this size or more wait until they have been received (0: every send; default: none)"),
)  # fmt: skip
_BUFFERS = (
    ("--slots", "N", "slots", values.count, "announced messages, for each pair of nodes (default: 32)"),
    ("--ring", "SIZE", "ring", values.size,
     "memory for messages up to 8K, for each sender (default: 1M)"),
    ("--arena", "SIZE", "arena", values.size, "memory for longer messages, for each sender (default: 256M)"),
    ("--queue-limit", "SIZE", "queue_limit", values.size,
     "a send waits while its node has sent this much that no node has received, beyond the share (limit / nodes) that "
     "receivers keep for it"),
    ("--fanin", "N", "fanin", values.count,
     "nodes in a group of the reduction tree (default: one flat group, or 8)"),
    ("--prefault", None, "prefault", None,
     "put all rings and arenas into memory before the program begins: a slower start, but no slow first messages"),
)  # fmt: skip
_OTHER_LAUNCHERS = (
    ("--tag-output", None, "label", None, "as in other launchers: -l"),
    ("--oversubscribe, --allow-run-as-root, --use-hwthread-cpus", None, None, None,
     "accepted as in other launchers, without effect"),
)  # fmt: skip

# Groups of `--help`, with their headings.
_SECTIONS = (
    ("Options of one program", _OF_A_PROGRAM),
    ("Where nodes run", _WHERE_NODES_RUN),
    ("Output and input", _OUTPUT_AND_INPUT),
    ("Processors", _PROCESSORS),
    ("Time limits", _TIME_LIMITS),
    ("Watching and measuring", _MEASURING),
    ("Finding errors", _FINDING_ERRORS),
    ("Buffers", _BUFFERS),
    ("As in other launchers", _OTHER_LAUNCHERS),
)
_OF_THE_RUN = tuple(row for _heading, rows in _SECTIONS[1:] for row in rows)
MOST_USED = (
    "-n",
    "--boxes",
    "--room",
    "--show",
    "--timeout",
    "--stats",
    "--watch",
    "--trace",
    "--debug",
    "--perturb",
)

BUFFERS = ("slots", "ring", "arena", "queue_limit", "fanin")

# Fields that concern the run as a whole, with any of its programs; so do the buffers.
WHOLE = frozenset(row[2] for row in _OF_THE_RUN if row[2]) - frozenset(BUFFERS)

_ALONE = {"--debug": "0", "--stats": "nodes", "--watch": "terminal"}  # the values of options that stand alone
_TOOLS_AND_PAGES = (*ranks.TOOLS, "all", "browser", "terminal")
# Synonyms from other launchers, and from other commands here.
_ELSEWHERE = dict.fromkeys(("--nodes", "--np", "--procs", "--ntasks", "--processes", "--nn", "-N"), "-n")
_CHATTY = ("-v", "--verbose", "-q", "--quiet", "-s", "--silent")

_USAGE = """spcomm run [options] program [arguments] [: [options] program [arguments]]...
spcomm run [options] -m module [arguments]
spcomm run [options] -c code [arguments]"""
_ABOUT = """Runs one program as N cooperating nodes, or several programs together. A program is a Python script
(its name ends in .py), anything else that Python starts (a .pyz file, a folder with a __main__.py, - for the standard
input), or an executable. The words after its name are its own arguments. spcomm run -h shows the most used options."""
_CLOSING = r"""Options of one program precede its name; all others are given with any of the programs. RANKS are
numbers and ranges such as 0,2-5, or all, or none; with several groups 1:0-3 means nodes 0 to 3 of group 1. {grammar}

A lone : separates programs; to pass one to a program as an argument write '\:'.

Exit codes: of the first node that failed; 99 deadlock, 124 timeout, 125 spcomm itself, 126 not executable, 127 not
found, 128 + signal number, 130 Ctrl-C. The last line on stderr says which."""


class HelpAsked(Exception):
    """Its text is `-h` or `--help`."""


class RunParser(ArgumentParser):
    """Parser of the options of `spcomm run`, whose errors are exceptions."""

    hint = ""  # at the end of the sentence on an unknown option

    def show_help(self, word: str) -> "NoReturn":
        raise HelpAsked(word)

    def error(self, message: str) -> "NoReturn":
        raise UsageError(f"{self.prog}: {message}")

    def is_value(self, name: str, word: str) -> bool:
        """Refuse a next word that looks like the value of an option that takes one only with `=`."""
        looks = word.partition(":")[0] in _TOOLS_AND_PAGES or word[:1].isdecimal()
        if looks and not os.path.exists(word):
            self.error(
                f"{name} {word}: the program follows {name}; did you mean {name}={word}, without a space?"
            )
        return False

    def unknown(self, word: str) -> str:
        import difflib

        name = word.partition("=")[0]
        near = (
            [_ELSEWHERE[name]]
            if name in _ELSEWHERE
            else difflib.get_close_matches(name, self.options, 1, 0.75)
        )
        hint = f"did you mean {near[0]}?" if near else "spcomm run --help lists the options"
        if name in _CHATTY:
            hint = (
                "a run that goes well prints nothing of its own; --stats shows what it did, --show none hides the "
                "nodes"
            )
        return f"unknown option {word}; {hint} (the program's own options follow its name){self.hint}"

    def short_help(self) -> str:
        """Return the text of `spcomm run -h`: the most used options, each in a few words."""
        rows = [row_of(action) for name, action in self.options.items() if name in MOST_USED]
        return help_text(
            ["spcomm run [options] program [arguments]"],
            "Runs a program, a Python script or an executable, as N cooperating nodes.",
            [("", [(label, _in_short(text)) for label, text in rows])],
            "The words after the program's name are its own arguments. All options: spcomm run --help",
        )


def parser() -> RunParser:
    """Return the parser of `spcomm run`."""
    from spcomm.text import SIZE_GRAMMAR, TIME_GRAMMAR

    closing = _CLOSING.format(grammar=f"TIME is {TIME_GRAMMAR}. SIZE is {SIZE_GRAMMAR}.")
    made = RunParser("spcomm run", _USAGE, _ABOUT, closing, completed="FILE", program_after=("-m", "-c"))
    for heading, rows in _SECTIONS:
        group = made.add_argument_group(heading)
        for spellings, value, field, read, text in rows:
            names = spellings.split(", ")
            more: dict = {"dest": field or "ignored", "help": text, "default": SUPPRESS}
            if value is None:
                more["action"] = read or "store_true"
            else:
                more |= {"metavar": value.removeprefix("="), "type": partial(read, names[0])}
                more["action"] = "append" if field == "exports" else "store"
                if value[0] == "=":
                    more |= {"nargs": "?", "const": _ALONE[names[0]]}
            group.add_argument(*names, **more)
    return made


def _in_short(text: str) -> str:
    """Return the beginning of a sentence, up to its first pause."""
    import re

    return re.split(r" \(|[:;.] |, and ", text, maxsplit=1)[0]
