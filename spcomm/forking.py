# SPDX-License-Identifier: MIT
"""`startup(local_nodes=4)` outside the launcher: this process becomes node 0, and three copies of it the others.

The forking itself, and the supervisor that watches over the run, are C (csrc/fork/spc_fork.h). Here is what a Python
process needs around it: when it is refused, streams, random numbers, the report of an exception, the end.
"""

import os
import signal
import sys

from spcomm import config
from spcomm._core import comm, errors, forking, segments

_ADVICE = "put the program into a file and start it with `spcomm run -n 4 program.py`"

_fork: "forking.Fork | None" = None  # this process's part, once it has forked
_ends_by_itself = False  # C's exit() waits for the other nodes


def start(nodes: int, group_id: int, call: str) -> comm.Comm:
    """Fork so many nodes, and return each one's `Comm`. `call` is the text of the call, for errors."""
    _refuse(call)
    _warn_of_generators(call)
    try:
        segment = segments.Segment(nodes, disable=segments.disable_mask())
    except OSError as error:
        raise OSError(error.errno, f"{call}: {error.strerror}") from None
    try:
        return _join(segment.fd, nodes, group_id, call)
    finally:
        segment.close()


def meet(numbers: "tuple[int, int, int]", infile: "str | os.PathLike[str]", call: str) -> comm.Comm:
    """The same with boxes on other machines. `numbers`: of nodes here, of nodes in the run, of the group."""
    _refuse(call, numbers[0])
    if numbers[0] > 1:
        _warn_of_generators(call)
    meeting = forking.meet(call, _command("launch.room.meet"), numbers, infile, _program())
    os.environ.pop("SPCOMM_CODE", None)  # what the program starts is not to know it
    try:
        return _join(meeting.fd, meeting.nodes, numbers[2], call, meeting)
    finally:
        meeting.close()


def join(place: forking.Place, group_id: int) -> comm.Comm:
    """Join the run of all processes of another launcher, and return this node's `Comm`."""
    global _fork, _ends_by_itself
    from spcomm.launch.base import report

    is_maker = place.is_first and place.is_one_machine
    segment = segments.Segment(place.size, disable=segments.disable_mask()) if is_maker else None
    descriptor = -1
    try:
        of_segment = segment.fd if segment is not None else -1
        _fork, descriptor = forking.join_launched(
            place,
            of_segment,
            _command("launch.room.meet"),
            _command("launch.supervise.conclude"),
            group_id,
            _program(),
        )
        report.watch(_fork.report_descriptor, _fork.rank)
        node = comm.Comm(descriptor, _fork.rank, group_id)
        config.mark(node.rank, node.size)
        forking.guard(node, _fork)
        _ends_by_itself = _fork.wait_at_exit()
    except Exception:
        config.trim_tracebacks()
        raise
    finally:
        if segment is not None:
            segment.close()
        if descriptor >= 0:
            os.close(descriptor)
    return node


def _program() -> str:
    return os.path.basename(sys.argv[0]) or "a program"


def _command(module: str) -> "list[str]":
    """Return the command that runs a module's `main` with this Python, and this spcomm."""
    package = os.path.dirname(os.path.abspath(sys.modules["spcomm"].__path__[0]))
    work = f"import sys; sys.path[:1] = [sys.argv[1]]; from spcomm.{module} import main; sys.exit(main(sys.argv[2:]))"
    flags = ["-P"] if sys.flags.safe_path else []
    return [sys.executable, *flags, "-c", work, package]


def _join(
    descriptor: int, nodes: int, group_id: int, call: str, meeting: "forking.Meeting | None" = None
) -> comm.Comm:
    """In each node, which this makes."""
    global _fork, _ends_by_itself
    from spcomm.launch.base import report

    # Ctrl-C waits until there is a node that can report it.
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        _flush()
        _fork = _fork_nodes(descriptor, nodes, call, meeting)
        report.watch(_fork.report_descriptor, _fork.rank)
        _settle(_fork.is_caller)
        node = comm.Comm(descriptor, _fork.rank, group_id)
        config.mark(node.rank, node.size)
        forking.guard(node, _fork)
        _ends_by_itself = not _fork.is_caller or _fork.wait_at_exit()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held - {signal.SIGTERM})  # which a fork has unblocked
    return node


def end() -> None:
    """At exit, after `Comm.close`: node 0 is to be the last one to go, with the exit code of the run.

    C's exit() sees to it, when Python is gone and its exit status is known. It is not reached after an uncaught
    KeyboardInterrupt (Python ends itself by SIGINT), and not every system tells it the status.
    """
    if _fork is None or not _fork.is_caller:
        return
    error = getattr(sys, "last_exc", getattr(sys, "last_value", None))
    if isinstance(error, KeyboardInterrupt):
        try:
            _fork.wait(130)
        except KeyboardInterrupt:
            pass  # the second one: the supervisor has heard it, too, and waited no longer
    elif not _ends_by_itself:
        mine = 0 if error is None else 1
        code = _fork.wait(mine)
        if code != mine:
            _flush()
            os._exit(code)


def _fork_nodes(descriptor: int, nodes: int, call: str, meeting: "forking.Meeting | None") -> forking.Fork:
    try:
        return forking.fork_nodes(descriptor, nodes, _command("launch.supervise.conclude"), meeting=meeting)
    except OSError as error:
        from spcomm import resource_limits

        advice = f"try fewer nodes, or {resource_limits.advice(error.errno or 0)}"
        text = f"{call}: {nodes} nodes cannot be started ({error.strerror}); {advice}"
        raise OSError(error.errno, text) from None


# ---- when it is refused


def _refuse(call: str, nodes: int = 2) -> None:
    why = _unfit_place() or (_threads() if nodes > 1 else "")
    if why:
        raise errors.ConfigError(f"{call}: {why}")


def _unfit_place() -> str:
    if config.in_ipython():
        where = "a notebook's kernel" if "ipykernel" in sys.modules else "IPython"
        what = "cannot be forked into nodes, each of which would go on as that kernel"
        return f"{where} {what}; {config.CELL}"
    if hasattr(sys, "ps1"):
        return f"at Python's prompt only node 0 would get what you type next; {_ADVICE}"
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    if parent is not None and parent() is not None:
        return "a process of multiprocessing cannot be forked into nodes; call startup() in the main process"
    return ""


def _threads() -> str:
    """A fork copies the calling thread alone: what the others were about to do never happens in the copies."""
    threading = sys.modules.get("threading")
    names: list[str] = []
    if threading is not None:
        me = threading.get_ident()
        names = sorted(thread.name for thread in threading.enumerate() if thread.ident != me)
    count = max(len(names), forking.other_threads())
    if not count:
        return ""
    named = f" ({', '.join(names[:5])}{', …' if len(names) > 5 else ''})" if names else ""
    found = f"{count} other threads are" if count > 1 else "another thread is"
    advice = "call startup() before anything that starts threads, or use `spcomm run`"
    return f"{found} running{named}, which the other nodes would not have; {advice}"


# ---- streams and random numbers


def _flush() -> None:
    """Flush buffers, which every node would write otherwise."""
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        try:
            getattr(sys, name).flush()
        except (AttributeError, OSError, ValueError):
            pass  # none, closed, or nobody reads it


def _settle(is_caller: bool) -> None:
    try:
        # Lines of different nodes stay whole, with PYTHONUNBUFFERED too.
        sys.stdout.reconfigure(line_buffering=True, write_through=False)
    except (AttributeError, OSError, ValueError):
        pass
    if is_caller:
        return
    # Input that node 0 has read ahead is its own; descriptor 0 is /dev/null by now.
    old = sys.stdin
    if old is not None:
        encoding, wrong = getattr(old, "encoding", None), getattr(old, "errors", None)
        sys.stdin = sys.__stdin__ = open(0, encoding=encoding, errors=wrong, closefd=False)
    # `random` reseeds itself after a fork; _warn_of_generators tells of other generators.
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed()


def _warn_of_generators(call: str) -> None:
    """Name the program's own random generators that exist already, of which each node gets a copy in the same state."""
    main = sys.modules.get("__main__")
    found = [(name, value) for name, value in vars(main).items() if _is_generator(value)] if main else []
    if not found or sys.stderr is None:
        return
    names = [name + _place_of(main, name) for name, _value in found]
    listed = ", ".join(names[:-1]) + (" and " if names[1:] else "") + names[-1]
    was, it, draws = ("were", "them", "they draw") if names[1:] else ("was", "it", "it draws")
    is_numpy = type(found[0][1]).__module__.startswith("numpy")
    seeded = "numpy.random.default_rng([1, comm.rank])" if is_numpy else 'random.Random(f"1 {comm.rank}")'
    print(
        f"spcomm: warning: {listed} {was} made before {call}, so {draws} the same numbers on all nodes; make {it} "
        f"after that line, with a seed for each node: {seeded}",
        file=sys.stderr,
    )


def _is_generator(value: object) -> bool:
    """Whether it draws from a state of its own. Those of `random` and `numpy.random` themselves get a new one."""
    plain, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
    if plain is not None and isinstance(value, plain.Random):
        return value is not plain._inst and not isinstance(value, plain.SystemRandom)
    if numpy is None or not isinstance(value, (numpy.Generator, numpy.RandomState)):
        return False
    return value is not numpy.mtrand._rand


def _place_of(main: object, name: str) -> str:
    """Return " (program.py:4)": the program's line that last gave a value to this variable, as far as it is known."""
    import ast
    import linecache

    path, caller = getattr(main, "__file__", None), sys._getframe()
    while caller.f_back is not None and caller.f_globals is not vars(main):
        caller = caller.f_back
    if path is None or caller.f_globals is not vars(main):
        return ""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return ""
    lines = [
        part.lineno
        for part in ast.walk(tree)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id == name
    ]
    before = [line for line in lines if line < caller.f_lineno]
    return f" ({os.path.basename(path)}:{max(before)})" if before else ""
