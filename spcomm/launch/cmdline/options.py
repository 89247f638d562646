# SPDX-License-Identifier: MIT
"""The command line of `spcomm run`. `table` has the options."""

from spcomm.config import is_in_job
from spcomm.launch.base.record import dataclass, field, replace
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.table import BUFFERS, WHOLE, HelpAsked, RunParser, parser
from spcomm.launch.cmdline.values import LINK_TIMEOUT_S, MOST_NODES, TRACE_EVENTS, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from spcomm.launch.cmdline.ranks import Debug, Ranks

_SEPARATOR = ":"
_HINT = r" (a lone : separates programs; as an argument of a program write '\:')"
STALL_S = 5.0  # --stall, unless it is given


@dataclass(frozen=True, eq=False)
class Part:
    """Options of one program on the command line. None: not given."""

    nodes: int | None = None
    group: int = 0
    start: str | None = None
    preload: "list[str] | None" = None
    module: str | None = None
    code: str | None = None  # -c
    exports: "list[tuple[str, str | None]]" = field(default_factory=list)  # -x: name, and value or None
    environment: str = "all"
    folder: str | None = None  # --wdir
    program: str | None = None
    arguments: "list[str]" = field(default_factory=list)
    hosts: "list[tuple[str, int | None]] | None" = None  # with the number of nodes that fit on each
    boxes: "list[int]" = field(default_factory=list)  # with hosts: the box of each node

    @property
    def name(self) -> str:
        """The program, for sentences about it."""
        return self.program or (f"-m {self.module}" if self.module is not None else "-c")

    @property
    def is_given(self) -> bool:
        """Whether there is a program."""
        return bool(self.program) or self.module is not None or self.code is not None


@dataclass(frozen=True, eq=False)
class Options:
    """Options of the whole run on the command line, and its programs. None: not given."""

    parts: "list[Part]" = field(default_factory=list)
    boxes: int | None = None
    placing: "str | tuple[int, ...] | None" = None  # --map
    hosts: "list[str] | None" = None  # by box: its host, or the member of a room
    alone: bool = False
    # The machines of the scheduler's job, if they are used.
    job_hosts: "list[tuple[str, int | None]]" = field(default_factory=list)
    ssh: str | None = None
    reach: str | None = None  # as `ssh`, with {host} for the host's name
    tunnel: str | None = None
    listen: str | None = None
    room: str | None = None
    server: str | None = None
    members: int | None = None  # the number to wait for
    fetch: str | None = None  # the folder for files of a room
    fetch_limit: int | None = None  # bytes
    link_timeout: float = LINK_TIMEOUT_S
    link: str | None = None  # None: tcp
    mpi: str | None = None  # the command that starts gateways
    route: str | None = None  # None: `groups.choose_route` decides
    label: bool | None = None
    color: bool | None = None
    show: "Ranks | None" = None
    output: str | None = None
    window: "Ranks | None" = None
    stdin: "Ranks | None" = None
    bind_to: "str | tuple[tuple[int, ...], ...] | None" = None
    report_bindings: bool = False
    timeout: float | None = None
    grace: float = 3.0
    stall: float | None = None  # 0: never
    close_timeout: float | None = None  # 0: never gives up
    strict: bool = False
    stats: str | None = None  # nodes or all
    watch: str | None = None  # terminal or browser
    trace: str | None = None  # the file
    virtual: bool = False
    trace_events: int | None = None  # that each node keeps
    debug: "Debug | None" = None
    perturb: bool = False
    prefault: bool = False
    seed: int | None = None
    rendezvous: int | None = None  # bytes
    buffers: "dict[str, int]" = field(default_factory=dict)  # slots, ring, arena, queue_limit, fanin
    help: str = ""  # -h or --help
    # Field: its value, and the words that gave it.
    said: "dict[str, tuple[object, str]]" = field(default_factory=dict)

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

    def segment_settings(self, seed: "int | None") -> "dict[str, Any]":
        """Return the settings that all segments of the run have in common. `seed`: of --perturb."""
        return {
            "perturb": seed,
            "rendezvous": self.rendezvous,
            "prefault": self.prefault,
            "trace_events": self.recorded,
            "counts_times": bool(self.stats),
        }


def parse(arguments: "list[str]") -> Options:
    """Read the words after `spcomm run`: programs, separated by a lone `:`, each with options before it.

    The first word that is not an option is the program; the rest, up to the next `:`, is its own.
    """
    made, parts = parser(), []
    said: dict[str, tuple[object, str]] = {}
    pieces = _split(arguments)
    if len(pieces) > 1 and [] in pieces:
        raise _no_program(pieces.index([]), len(pieces))
    for at, words in enumerate(pieces):
        # An unknown option may be one of a program that lost it to a `:` meant as an argument.
        made.hint = _HINT if at else ""
        try:
            part, of_run = _read_part(words, made)
        except HelpAsked as asked:
            return Options(help=str(asked))
        if not part.is_given:
            raise _no_program(at, len(pieces))
        if part.nodes is None and part.hosts is None and len(pieces) > 1:
            raise UsageError(
                f"spcomm run: {part.name}: how many nodes? With several programs each needs its number, as in "
                f"-n 2 a.py : -n 2 b.py{_HINT}"
            )
        parts.append(part)
        _merge(said, of_run)
    return _completed(_options(parts, said))


def _merge(said: "dict[str, tuple[object, str]]", of_run: "dict[str, tuple[object, str]]") -> None:
    """Add options of the whole run that were given with one of its programs to those of the programs before."""
    for name, (value, words) in of_run.items():
        before, words_before = said.get(name, (value, words))
        if before != value:
            raise UsageError(
                f"spcomm run: {words_before} and {words}: these are for the whole run, with all its programs; "
                "give one of them"
            )
        said[name] = value, words_before


def _options(parts: "list[Part]", said: "dict[str, tuple[object, str]]") -> Options:
    values: dict[str, Any] = {name: value for name, (value, _words) in said.items()}
    buffers = {name: values.pop(name) for name in BUFFERS if name in values}
    return Options(parts=parts, said=said, buffers=buffers, **values)


def _completed(options: Options) -> Options:
    """Add what follows from several options together. Raises `UsageError` for those that contradict each other."""
    _check_debug(options)
    if options.seed is not None and not options.perturb:
        raise UsageError(f"spcomm run: --seed {options.seed} is the seed of --perturb, which was not given")
    options = _on_machines(options)
    if isinstance(options.bind_to, tuple) and (options.hosts or options.room is not None):
        raise UsageError(
            "spcomm run: --bind-to with processors is about this machine; other machines may have others: use "
            "--bind-to core"
        )
    _check_groups(options.parts)
    has_boxes = options.boxes is not None or options.placing is not None
    if has_boxes and options.hosts is None and options.room is None:
        from spcomm.launch.cmdline.boxes import number

        options = replace(options, boxes=number(options))
    _check_trace(options)
    return _with_patience(options)


def _on_machines(options: Options) -> Options:
    """Add the hosts and boxes of the nodes, as far as the options name them."""
    of_room = (options.room, options.server, options.members, options.fetch, options.fetch_limit)
    if any(one is not None for one in of_room):
        from spcomm.launch.cmdline.machines import in_room

        options = in_room(options)
    if not options.alone and is_in_job():
        from spcomm.launch.cmdline.allocation import in_job

        options = in_job(options)
    has_hosts = bool(options.job_hosts) or any(part.hosts is not None for part in options.parts)
    about_hosts = (options.ssh, options.reach, options.tunnel, options.listen)
    if has_hosts or any(one is not None for one in about_hosts):
        from spcomm.launch.cmdline.machines import on_hosts

        options = on_hosts(options)
    if options.route == "direct" and (options.room is not None or options.server is not None):
        raise UsageError(
            "spcomm run: --route direct: with --room and --server everything goes through the server; leave it out"
        )
    if options.route == "direct" and options.boxes is None and options.placing is None and not options.hosts:
        raise UsageError("spcomm run: --route direct is about several boxes, as in --boxes 2")
    if options.link is not None or options.mpi is not None:
        from spcomm.launch.cmdline.machines import check_link

        check_link(options)
    return options


def _with_patience(options: Options) -> Options:
    """Add the times that were left open: a user at a debugger keeps the other nodes waiting."""
    is_debugged = options.debug is not None
    stall = options.stall if options.stall is not None else 0.0 if is_debugged else STALL_S
    close = 0.0 if is_debugged and options.close_timeout is None else options.close_timeout
    return replace(options, stall=stall, close_timeout=close)


def _check_debug(options: Options) -> None:
    if options.debug is None:
        return
    if options.timeout is not None:
        raise UsageError(
            f"spcomm run: --timeout {options.timeout:g} and --debug: a run with a debugger takes as long as you do; "
            "leave --timeout out"
        )
    if options.watch == "terminal" and options.debug.tool != "debugpy":
        raise UsageError(
            "spcomm run: --watch and --debug: the debugger needs the terminal for itself; leave --watch out, or "
            "use --watch=browser or --debug=debugpy:RANKS"
        )


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


def _read_part(words: "list[str]", made: RunParser) -> "tuple[Part, dict[str, tuple[object, str]]]":
    """Read one program with its options. Return it, and the options of the whole run with the words that gave them."""
    options, rest = made.divided(words)
    given = {
        made.options[name].dest: f"{name} {text}".rstrip()
        for name, _, text in (word.partition("=") for word in options)
    }
    values = vars(made.parse_known_args(options)[0])
    of_run = {name: (values[name], given[name]) for name in values if name in WHOLE or name in BUFFERS}
    own = {
        name: value for name, value in values.items() if name in Part.__annotations__ and name not in of_run
    }
    if rest and not own.keys() & {"module", "code"}:
        own["program"] = rest.pop(0)
    return Part(arguments=[_unescaped(argument) for argument in rest], **own), of_run
