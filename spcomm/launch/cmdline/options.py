# SPDX-License-Identifier: MIT
"""The command line of `spcomm run`. `table` has the options."""

from spcomm.config import is_in_job
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.table import BUFFERS, WHOLE, HelpAsked, RunParser, parser
from spcomm.launch.cmdline.values import LINK_TIMEOUT_S, MOST_NODES, TRACE_EVENTS, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm.launch.cmdline.ranks import Debug, Ranks

_SEPARATOR = ":"
_HINT = r" (a lone : separates programs; as an argument of a program write '\:')"
STALL_S = 5.0  # --stall, unless it is given


class Part:
    """Options of one program on the command line. None: not given."""

    def __init__(self) -> None:
        self.nodes: int | None = None
        self.group: int = 0
        self.start: str | None = None
        self.preload: list[str] | None = None
        self.module: str | None = None
        self.code: str | None = None  # -c
        self.exports: list[tuple[str, str | None]] = []  # -x: name, and value or None
        self.environment: str = "all"
        self.folder: str | None = None  # --wdir
        self.program: str | None = None
        self.arguments: list[str] = []
        self.hosts: list[tuple[str, int | None]] | None = None  # with the number of nodes that fit on each
        self.boxes: list[int] = []  # with hosts: the box of each node

    @property
    def name(self) -> str:
        """The program, for sentences about it."""
        return self.program or (f"-m {self.module}" if self.module is not None else "-c")

    @property
    def is_given(self) -> bool:
        """Whether there is a program."""
        return bool(self.program) or self.module is not None or self.code is not None


class Options:
    """Options of the whole run on the command line, and its programs. None: not given."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.boxes: int | None = None
        self.placing: str | tuple[int, ...] | None = None  # --map
        self.hosts: list[str] | None = None  # by box: its host, or the member of a room
        self.alone = False
        self.job_hosts: list[tuple[str, int | None]] = []  # of the scheduler's job, if its machines are used
        self.ssh: str | None = None
        self.reach: str | None = None  # as `ssh`, with {host} for the host's name
        self.tunnel: str | None = None
        self.listen: str | None = None
        self.room: str | None = None
        self.server: str | None = None
        self.members: int | None = None  # the number to wait for
        self.fetch: str | None = None  # the folder for files of a room
        self.fetch_limit: int | None = None  # bytes
        self.link_timeout = LINK_TIMEOUT_S
        self.link: str | None = None  # None: tcp
        self.mpi: str | None = None  # the command that starts gateways
        self.route: str | None = None  # None: `groups.choose_route` decides
        self.label: bool | None = None
        self.color: bool | None = None
        self.show: Ranks | None = None
        self.output: str | None = None
        self.window: Ranks | None = None
        self.stdin: Ranks | None = None
        self.bind_to: str | tuple[tuple[int, ...], ...] | None = None
        self.report_bindings = False
        self.timeout: float | None = None
        self.grace: float = 3.0
        self.stall: float | None = None  # 0: never
        self.close_timeout: float | None = None  # 0: never gives up
        self.strict = False
        self.stats: str | None = None  # nodes or all
        self.watch: str | None = None  # terminal or browser
        self.trace: str | None = None  # the file
        self.virtual = False
        self.trace_events: int | None = None  # that each node keeps
        self.debug: Debug | None = None
        self.perturb = False
        self.prefault = False
        self.seed: int | None = None
        self.rendezvous: int | None = None  # bytes
        self.buffers: dict[str, int] = {}  # slots, ring, arena, queue_limit, fanin
        self.help = ""  # -h or --help
        self.said: dict[str, tuple[object, str]] = {}  # field: its value, and the words that gave it

    @property
    def programs(self) -> str:
        """The names of its programs, without folders."""
        return " : ".join(dict.fromkeys(part.name.rpartition("/")[2] for part in self.parts))

    @property
    def recorded(self) -> int:
        """The number of events that each node keeps; 0: the run is not traced."""
        return self.trace_events or TRACE_EVENTS if self.is_traced else 0

    @property
    def is_traced(self) -> bool:
        """Whether the run is traced: for a file, for the virtual times, or for a page."""
        return self.trace is not None or self.virtual or self.watch == "browser"

    def take(self, said: "dict[str, tuple[object, str]]") -> None:
        """Take over options of the whole run that were given with one of its programs."""
        for field, (value, words) in said.items():
            before = self.said.setdefault(field, (value, words))
            if before[0] != value:
                raise UsageError(
                    f"spcomm run: {before[1]} and {words}: these are for the whole run, with all its programs; "
                    "give one of them"
                )
            if field in WHOLE:
                setattr(self, field, value)
            else:
                self.buffers[field] = value  # type: ignore[assignment]

    def finish(self) -> None:
        """Derive values from several options together. Raises `UsageError` for those that contradict each other."""
        if self.debug is not None and self.timeout is not None:
            raise UsageError(
                f"spcomm run: --timeout {self.timeout:g} and --debug: a run with a debugger takes as long as you do; "
                "leave --timeout out"
            )
        if self.watch == "terminal" and self.debug is not None and self.debug.tool != "debugpy":
            raise UsageError(
                "spcomm run: --watch and --debug: the debugger needs the terminal for itself; leave --watch out, or "
                "use --watch=browser or --debug=debugpy:RANKS"
            )
        if self.debug is not None and self.close_timeout is None:
            self.close_timeout = 0.0
        if self.seed is not None and not self.perturb:
            raise UsageError(f"spcomm run: --seed {self.seed} is the seed of --perturb, which was not given")
        of_room = (self.room, self.server, self.members, self.fetch, self.fetch_limit)
        if any(one is not None for one in of_room):
            from spcomm.launch.cmdline.machines import check_room

            check_room(self)
        if not self.alone and is_in_job():
            from spcomm.launch.cmdline.allocation import use

            use(self)
        has_hosts = bool(self.job_hosts) or any(part.hosts is not None for part in self.parts)
        about_hosts = (self.ssh, self.reach, self.tunnel, self.listen)
        if has_hosts or any(one is not None for one in about_hosts):
            from spcomm.launch.cmdline.machines import check_hosts

            check_hosts(self)
        if self.route == "direct" and (self.room is not None or self.server is not None):
            raise UsageError(
                "spcomm run: --route direct: with --room and --server everything goes through the server; leave it out"
            )
        if self.route == "direct" and self.boxes is None and self.placing is None and not self.hosts:
            raise UsageError("spcomm run: --route direct is about several boxes, as in --boxes 2")
        if self.link is not None or self.mpi is not None:
            from spcomm.launch.cmdline.machines import check_link

            check_link(self)
        if isinstance(self.bind_to, tuple) and (self.hosts or self.room is not None):
            raise UsageError(
                "spcomm run: --bind-to with processors is about this machine; other machines may have others: use "
                "--bind-to core"
            )
        _check_groups(self.parts)
        has_boxes = self.boxes is not None or self.placing is not None
        if has_boxes and self.hosts is None and self.room is None:
            from spcomm.launch.cmdline.boxes import check

            check(self)
        _check_trace(self)
        if self.stall is None:  # a user at a debugger keeps the other nodes waiting
            self.stall = 0.0 if self.debug is not None else STALL_S


def parse(arguments: "list[str]") -> Options:
    """Read the words after `spcomm run`: programs, separated by a lone `:`, each with options before it.

    The first word that is not an option is the program; the rest, up to the next `:`, is its own.
    """
    options, made = Options(), parser()
    pieces = _split(arguments)
    if len(pieces) > 1 and [] in pieces:
        raise _no_program(pieces.index([]), len(pieces))
    for at, words in enumerate(pieces):
        part = Part()
        # An unknown option may be one of a program that lost it to a `:` meant as an argument.
        made.hint = _HINT if at else ""
        try:
            said = _read_part(part, words, made)
        except HelpAsked as asked:
            options.help = str(asked)
            return options
        if not part.is_given:
            raise _no_program(at, len(pieces))
        if part.nodes is None and part.hosts is None and len(pieces) > 1:
            raise UsageError(
                f"spcomm run: {part.name}: how many nodes? With several programs each needs its number, as in "
                f"-n 2 a.py : -n 2 b.py{_HINT}"
            )
        options.parts.append(part)
        options.take(said)
    options.finish()
    return options


def check_buffers(options: Options, limits: "dict[str, tuple[int, int, int]]") -> None:
    """Raise when a buffer size lies outside the core's limits."""
    for name, value in options.buffers.items():
        least, most, default = limits[name]
        if not least <= value <= most:
            option = "--" + name.replace("_", "-")
            default_text = size_text(name, default) if default else "chosen for this machine"
            raise UsageError(
                f"spcomm run: {option} {size_text(name, value)}: must be from {size_text(name, least)} to "
                f"{size_text(name, most)} (without {option}: {default_text})"
            )


def _split(arguments: "list[str]") -> "list[list[str]]":
    pieces: list[list[str]] = [[]]
    for word in arguments:
        if word == _SEPARATOR:
            pieces.append([])
        else:
            pieces[-1].append(word)
    return pieces


def _unescaped(word: str) -> str:
    r"""`\:` is the argument `:`, and `\\:` is `\:`."""
    before = word[:-1]
    return word[1:] if before and word.endswith(_SEPARATOR) and not before.strip("\\") else word


def _no_program(at: int, count: int) -> UsageError:
    if count == 1:
        return UsageError(
            "spcomm run: which program? For example: spcomm run -n 4 hello.py  (spcomm run --help)"
        )
    place = "before the first :" if at == 0 else "after the last :" if at == count - 1 else "between two :"
    return UsageError(f"spcomm run: which program, {place}? As in -n 2 a.py : -n 2 b.py{_HINT}")


def _check_trace(options: Options) -> None:
    if not options.is_traced:
        if options.trace_events is not None:
            raise UsageError(
                "spcomm run: --trace-events is about a trace; add --trace t.json, or leave it out"
            )
        return
    if any(part.group for part in options.parts):
        words = "--virtual" if options.virtual else "--watch=browser"
        words = f"--trace {options.trace}" if options.trace is not None else words
        hint = ", or use --watch" if words == "--watch=browser" else ""
        raise UsageError(f"spcomm run: {words}: a trace is of one group; leave --group out{hint}")


def _check_groups(parts: "list[Part]") -> None:
    groups: dict[int, int] = {}
    for part in parts:
        groups[part.group] = groups.get(part.group, 0) + (part.nodes or 1)
    for group, nodes in groups.items():
        if nodes > MOST_NODES:
            raise UsageError(
                f"spcomm run: the programs of group {group} have {nodes} nodes together; a group has at most "
                f"{MOST_NODES}"
            )


def _read_part(part: Part, words: "list[str]", made: RunParser) -> "dict[str, tuple[object, str]]":
    """Read one program with its options; return those of the whole run."""
    options, rest = made.divided(words)
    given = {
        made.options[name].dest: f"{name} {text}".rstrip()
        for name, _, text in (word.partition("=") for word in options)
    }
    said = {}
    for field, value in vars(made.parse_known_args(options)[0]).items():
        if field in WHOLE or field in BUFFERS:
            said[field] = value, given[field]
        elif hasattr(part, field):
            setattr(part, field, value)
    if not part.is_given and rest:
        part.program = rest.pop(0)
    part.arguments = [_unescaped(argument) for argument in rest]
    return said
