# SPDX-License-Identifier: MIT
"""`spcomm run`: from the command line to the exit code."""

import _signal
import gc
import os
import sys
import time

from spcomm import resource_limits  # without descriptors it could no longer be found
from spcomm.launch.base import nothing, process
from spcomm.launch.base.record import replace
from spcomm.launch.base.usage import UsageError, complain
from spcomm.launch.cmdline import options as command_line
from spcomm.launch.cmdline import plan as plans
from spcomm.launch.cmdline.options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:  # the launcher does without importing typing
    from typing import Any

    from spcomm.argument_parser import ArgumentParser
    from spcomm.launch.cmdline.groups import Group, Placement
    from spcomm.launch.cmdline.options import Part
    from spcomm.launch.local.display import Display
    from spcomm.launch.local.node_contract import Starter
    from spcomm.launch.local.run_processes import RunProcesses
    from spcomm.launch.remote.transport_contract import Transports

_ENDING = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)
_SIGNALS = (*_ENDING, _signal.SIGTSTP, _signal.SIGUSR1, _signal.SIGUSR2)
# After a program these are mostly meant for spcomm run.
_LATE = (
    "--boxes",
    "--debug",
    "--label",
    "--perturb",
    "--stats",
    "--strict",
    "--timeout",
    "--trace",
    "--virtual",
    "--watch",
)
_DESCRIPTORS_EACH = 2  # of the launcher, per node
_DESCRIPTORS_PROGRAM = 3  # a socket; shared memory and a pipe of a group
_DESCRIPTORS_BOX = 3  # shared memory; of its gateway, a wire
_DESCRIPTORS_MORE = 64


def main(arguments: list[str]) -> int:
    """Run a program as nodes and return the exit code."""
    process.open_standard_streams()
    try:
        signals, _ = process.signal_pipe(_SIGNALS)
        options = command_line.parse(arguments)
        if not options.help:
            return _run(options, signals)
    except UsageError as error:
        complain(str(error))
        return error.code
    except OSError as error:
        if error.errno not in resource_limits.SHORTAGES:
            return _internal_error()
        shortage = f"spcomm run: the system has no resources left for the launcher itself ({error.strerror})"
        complain(f"{shortage}; {resource_limits.advice(error.errno)}")
        return 125
    except Exception:
        return _internal_error()
    from spcomm.launch.cmdline import table

    # The caller handles a full disk, and a closed stdout swallows it.
    made = table.parser()
    print(made.short_help() if options.help == "-h" else made.format_help(), end="")
    return 0


def parser() -> "ArgumentParser":
    """Return the parser of `spcomm run`."""
    from spcomm.launch.cmdline import table

    return table.parser()


def _internal_error() -> int:
    """Print the error. The nodes end when the socket to the fork server does."""
    import traceback

    complain(traceback.format_exc() + "spcomm: an error of the launcher itself; please report it")
    return 125


def _run(options: Options, signals: int) -> int:
    programs = plans.resolve_all(options)
    if any(plan.name == plans.STDIN for plan in programs):
        _check_stdin(options)
    _note_late_option(options)
    if options.hosts is None and options.room is None:  # else where they start: remote.boxparts
        _check_mpi4py(programs)
    _try_to_write(options.trace)
    if options.room is None and options.server is None:
        return _start(options, programs, None, signals)
    from spcomm.launch.room import client

    session, options, programs = client.enter(options, programs, signals)
    try:
        return _start(options, programs, session, signals)
    finally:
        session.close()


def _check_stdin(options: Options) -> None:
    """Check that the standard input can be a program. Raises `UsageError`."""
    if os.isatty(0):
        raise UsageError(
            "spcomm run: -: each node reads the program from the standard input, which is a terminal; save it in a "
            "file, or give it with < or |"
        )
    if options.debug is not None:
        raise UsageError(
            "spcomm run: - and --debug: the standard input has the program, and a debugger needs it; save the program "
            "in a file"
        )


def _start(options: Options, programs: "list[plans.Plan]", session: "Any", signals: int) -> int:
    """Start the fork servers, first, so that they start while we read on; then prepare the run and supervise it."""
    placement = None
    if options.hosts is not None:
        from spcomm.launch.remote import hosts

        placement = hosts.spread(options, programs, session)
    machines = placement.machines if placement is not None else [[plan] for plan in programs]
    limit = _raise_descriptor_limit(sum(plan.nodes or 1 for plan in programs), len(machines), options)
    from spcomm.launch.local.fork_client import ForkClient

    fork_clients: list[Starter] = []
    try:
        for plans in machines:
            if plans[0].host is None:
                fork_clients.append(ForkClient(plans[0], process.WHERE_SIGNAL, limit))
            else:
                fork_clients.append(hosts.RemoteForkClient(plans))
        return _supervise(options, programs, fork_clients, session, signals, placement)
    except UsageError:
        for fork_client in fork_clients:
            fork_client.kill()
            fork_client.wait()
        raise


def _supervise(
    options: Options,
    programs: "list[plans.Plan]",
    fork_clients: "list[Starter]",
    session: "Any",
    signals: int,
    placement: "Placement | None" = None,
) -> int:
    """Prepare the run and supervise it. `placement`: it is known already if there are hosts."""
    from spcomm.launch.supervise.supervisor import Run, Supervisor

    segments = _segments()
    segments.adopt_orphans()  # the processes that a killed fork server would have adopted
    command_line.check_buffers(options, segments.LIMITS)
    placement = placement or _placed(options, programs, segments.cores())
    seed = _seed(options)
    at_prompt = None
    if options.debug is not None:
        from spcomm.launch.cmdline.debugging import prepare

        placement, at_prompt = prepare(options, placement)
    stdin = _stdin(options, placement, at_prompt)
    cpus = _cpus(options, placement)
    listen, link = _ways(options, placement)
    placement = replace(placement, groups=_with_segments(segments, options, placement.groups, seed))
    processes = _processes(fork_clients, placement)
    display = _display(options, placement, processes)
    _warn_if_stale()
    transports = None
    try:
        transports = _transports(options, placement, session, listen, link)
        gc.enable()
        files = session.files if session is not None else None
        run = Run(options, processes, stdin, display, transports, cpus, at_prompt, files)
        code = Supervisor(run).run(signals)
        if options.is_traced:
            return _finish_trace(options, placement.groups[0], code, display.page)
        return code
    finally:
        if transports is not None:
            transports.close()
        display.close(signals)


def _placed(options: Options, programs: "list[plans.Plan]", cores: float) -> "Placement":
    """Return the place of each node where all are on this machine. A program without -n gets all cores."""
    from spcomm.launch.cmdline.groups import Placement, choose_route, gather

    programs = [replace(plan, nodes=plan.nodes or max(1, int(cores))) for plan in programs]
    if options.boxes is not None:
        from spcomm.launch.cmdline.boxes import place

        programs = place(options, programs)
    programs, groups = gather(programs)
    return Placement([[plan] for plan in programs], groups, choose_route(groups, options))


def _seed(options: Options) -> "int | None":
    """Return the seed of --perturb: a new one, which is printed, if none is given."""
    if not options.perturb or options.seed is not None:
        return options.seed
    seed = int.from_bytes(os.urandom(2))
    complain(f"spcomm: the schedule is perturbed; --perturb --seed {seed} does the same again")
    return seed


def _ways(options: Options, placement: "Placement") -> "tuple[str | None, Any]":
    """Return the address on which the server of the boxes listens, and the link of --link mpi."""
    listen, link = options.listen, None
    if options.hosts is not None:
        from spcomm.launch.remote import hosts

        listen = hosts.listen(options, placement.groups)
    if options.link == "mpi":
        from spcomm.launch.remote.mpi_link import MpiLink

        link = MpiLink(options, placement.groups)
    return listen, link


def _processes(fork_clients: "list[Starter]", placement: "Placement") -> "RunProcesses":
    """Return the fork servers, each with the nodes that it is to start."""
    from spcomm.launch.local.run_processes import RunProcesses

    for fork_client, programs in zip(fork_clients, placement.machines, strict=True):
        fork_client.place(programs)
    return RunProcesses(fork_clients, placement.groups)


def _transports(
    options: Options, placement: "Placement", session: "Any", listen: "str | None", link: "Any"
) -> "Transports | None":
    """Start the processes that carry messages between boxes, and tell the boxes elsewhere how to reach them."""
    groups, transports = placement.groups, None
    if session is not None:
        return session.begin(groups, options)
    if any(group.boxes > 1 for group in groups):
        from spcomm.launch.remote.transport_processes import TransportProcesses

        transports = TransportProcesses(
            groups, options.link_timeout, listen, route=placement.route, link=link
        )
    if options.hosts is not None:
        from spcomm.launch.remote import hosts

        said = None if options.job_hosts and options.listen is None else listen
        hosts.tell(groups, transports, said, link)
    return transports


def _try_to_write(path: "str | None") -> None:
    """Check now rather than when the run is over. A new file is removed again: the trace may never be written."""
    try:
        if path is not None:
            is_new = not os.path.exists(path)
            open(path, "ab").close()
            if is_new:
                os.unlink(os.path.realpath(path))  # a dangling link stays one
    except OSError as error:
        raise UsageError(f"spcomm run: --trace {path}: cannot be written ({error.strerror})") from None


def _finish_trace(options: Options, group: "Any", code: int, page: "Any") -> int:
    """Write the recorded trace, print it, or give it to the page of --watch. A signal interrupts a long write."""
    from spcomm.launch import tracing

    _signals_end(True)
    try:
        return tracing.finish(options, group, code, page)
    finally:
        _signals_end(False)


def _signals_end(do: bool) -> None:
    """Let signals interrupt the writing of a long trace, during which no loop handles them."""
    before, after = (nothing, _break_off) if do else (_break_off, nothing)
    for number in _ENDING:
        if _signal.getsignal(number) == before:
            _signal.signal(number, after)


def _break_off(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(number)


def _stdin(options: Options, placement: "Placement", at_prompt: "int | None") -> "Any":
    from spcomm.launch.local.stdin import Stdin

    chosen = frozenset((0,)) - placement.in_panes
    readers = {index for plan in placement.plans if plan.name == plans.STDIN for index in plan.indices}
    if options.stdin is not None:
        chosen = options.stdin.indices(placement.groups) | readers
    elif readers:
        chosen = frozenset(readers)
    elif at_prompt is not None:
        chosen = frozenset((at_prompt,))
    # A table has to know of the lines that are typed, and a debugger at a terminal would want it as its own.
    is_needed = at_prompt is not None or options.watch not in (None, "browser")
    is_elsewhere = any(plan.host and not chosen.isdisjoint(plan.indices) for plan in placement.plans)
    return Stdin(chosen, relays=is_needed or is_elsewhere)


def _display(options: Options, placement: "Placement", processes: "RunProcesses") -> "Display":
    """Raise `UsageError` for nodes that do not exist, and for folders and windows that cannot be made."""
    from spcomm.launch.local.display import Display, want_colors, want_labels

    labels, groups = want_labels(options), placement.groups
    in_windows = options.window.indices(groups) if options.window is not None else frozenset()
    shown = options.show.indices(groups) if options.show is not None else None
    files = watch = windows = None
    if options.output is not None:
        from spcomm.launch.local.files import Files

        files = Files(options.output, groups)
    if options.watch == "browser":
        watch = _page_watch(options, processes)
    elif options.watch is not None:
        watch = _screen_watch(processes, want_colors(options))
    if in_windows:
        from spcomm.launch.local.windows import Windows

        windows = Windows(in_windows, placement.names, placement.in_panes, groups)
        if windows.hint:
            complain(f"spcomm: {windows.hint}")
    colors = want_colors(options) if labels else (False, False)
    return Display(placement.names, labels, colors, shown, files, watch, windows)


def _page_watch(options: Options, processes: "RunProcesses") -> "Any":
    from spcomm.launch.supervise import watch, watch_page

    try:
        page = watch_page.WatchPage(processes.groups[0], options.programs)
    except OSError as error:
        raise UsageError(
            f"spcomm run: --watch=browser: this system does not let the launcher serve a page on 127.0.0.1 "
            f"({error.strerror}); use --watch, or --trace FILE"
        ) from None
    complain(f"spcomm: watch this run at {page.url}")
    return watch.PageWatch(processes, page)


def _screen_watch(processes: "RunProcesses", colors: "tuple[bool, bool]") -> "Any":
    """Return the watch of this run; None, after a sentence, without a terminal. `colors`: of stdout and of stderr."""
    fd = next((fd for fd in (2, 1) if os.isatty(fd)), 0)
    if not fd:
        complain(
            "spcomm: --watch needs a terminal, and the output goes elsewhere; the program runs without it"
        )
        return None
    if os.environ.get("TERM", "dumb") == "dumb":
        complain(
            "spcomm: --watch needs a terminal whose cursor can be moved (TERM is dumb); the program runs without it"
        )
        return None
    from spcomm.launch.local.screen import Screen
    from spcomm.launch.supervise import watch_table
    from spcomm.launch.supervise.watch import ScreenWatch

    return ScreenWatch(processes, Screen(fd), watch_table.drawing(colors[fd - 1]))


def _cpus(options: Options, placement: "Placement") -> "list[tuple[int, ...]] | None":
    """Return the processors that nodes are bound to, in turn."""
    is_bound = options.bind_to not in (None, "none")
    if not is_bound and not options.report_bindings:
        return None
    from spcomm.launch.local import binding

    cpus = binding.places(() if options.bind_to == "core" else options.bind_to) if is_bound else None
    if options.report_bindings:
        size = sum(group.size for group in placement.groups)
        os.write(2, binding.describe(cpus, size, placement.names).encode())
    return cpus


def _segments() -> "Any":
    try:
        from spcomm._core import segments
    except ImportError as error:
        raise UsageError(
            f"spcomm: the compiled core cannot be loaded ({error}); install it with: "
            "python -m pip install . (in a checkout: python -m pip install -e .)"
        ) from None
    return segments


def _with_segments(
    segments: "Any", options: Options, groups: "list[Group]", seed: "int | None"
) -> "list[Group]":
    """Return the groups with their memory."""
    from spcomm._core.errors import SpcommError
    from spcomm.launch.cmdline.groups import busy

    buffers: dict[str, Any] = {}
    try:
        mask = segments.disable_mask()
        if options.buffers or len(groups) > 1 or groups[0].places:  # otherwise the core's defaults fit
            from spcomm.launch.cmdline.memory import sizes

            buffers = sizes(segments, options, groups, mask)
    except SpcommError as error:
        raise UsageError(f"spcomm run: {error}") from None
    # All nodes share the cores, whichever group or box they belong to.
    oversubscribed = busy(groups) > segments.cores()
    settings = options.segment_settings(seed)
    begun_ns = time.monotonic_ns()  # the same in all boxes
    found = []
    for group in groups:
        made, sizes_of_group = [], buffers
        if group.far:
            from spcomm.launch.remote import hosts

            sizes_of_group = hosts.same_sizes(segments, group.size, mask, buffers)
        for box in range(group.boxes):
            more = dict(sizes_of_group)
            if group.places:
                more.update(begun_ns=begun_ns, boxes=group.boxes, box=box, places=group.places)
            if box in group.far:
                made.append(hosts.far_segment(group, box, mask, settings, more))
            else:
                made.append(_segment(segments, group.size, oversubscribed, mask, {**settings, **more}))
        found.append(replace(group, segments=made))
    return found


def _segment(
    segments: "Any", size: int, oversubscribed: bool, mask: int, settings: "dict[str, Any]"
) -> "Any":
    from spcomm._core.errors import SpcommError

    try:
        return segments.Segment(size, oversubscribed=oversubscribed, disable=mask, **settings)
    except OSError as error:
        raise UsageError(f"spcomm run: {error.strerror}, or smaller --ring, --arena") from None
    except SpcommError as error:
        raise UsageError(f"spcomm run: {error}") from None


def _raise_descriptor_limit(nodes: int, programs: int, options: Options) -> tuple[int, int] | None:
    """Make room for many nodes' pipes. Return the limit to restore in nodes; None: nothing changed."""
    each = _DESCRIPTORS_EACH + sum(
        option is not None for option in (options.output, options.window, options.stdin)
    )
    boxes = (options.boxes or 0) * len({part.group for part in options.parts}) * _DESCRIPTORS_BOX
    needed = nodes * each + programs * _DESCRIPTORS_PROGRAM + boxes + _DESCRIPTORS_MORE
    if 0 < needed <= os.sysconf("SC_OPEN_MAX"):
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, hard) if hard > 0 else needed, hard))
        except (OSError, ValueError):
            return None
        return soft, hard
    return None


def _note_late_option(options: Options) -> None:
    """Note that `spcomm run x.py -n 4`, which is allowed, mostly is a mistake."""
    part = options.parts[0]
    name, words = part.program or "", part.arguments
    if not name.endswith(".py"):  # commands and modules often have such options of their own
        return
    for at, word in enumerate(words):
        given = ""
        if word in ("-n", "-np") and part.nodes is None and "".join(words[at + 1 : at + 2]).isdecimal():
            given = f"{word} {words[at + 1]}"
        elif word.partition("=")[0] in _LATE and not _mentions(part, word.partition("=")[0]):
            given = word if "=" in word else f"{word} …"
        if given:
            complain(
                f"spcomm: note: {given} after {name} is an argument of the program; options of spcomm run come before "
                f"it: spcomm run {given} {name}"
            )
            return


def _mentions(part: "Part", option: str) -> bool:
    """Whether a program knows an option of that name, or cannot be read."""
    try:
        with open(os.path.join(part.folder or "", part.program or ""), encoding="utf-8") as file:
            return option in file.read()
    except (OSError, ValueError):
        return True


def _check_mpi4py(programs: "list[plans.Plan]") -> None:
    """Raise `UsageError` if a program imports an mpi4py of another MPI: each node would be a run of its own."""
    from spcomm.mpi import bindings

    for note in filter(None, map(bindings.check, programs)):
        complain(f"spcomm: note: {note}")


def _warn_if_stale() -> None:
    from spcomm.launch.rebuild_check import newer_source

    source = newer_source(sys.modules["spcomm"].__path__[0])
    if source is not None:
        complain(f"spcomm: warning: {source} is newer than the compiled core; rebuild it: make build")
