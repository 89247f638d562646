# SPDX-License-Identifier: MIT
"""A node of a Cluster: waits for work, does it, gives back the result, and waits again.

It waits on its socket, not in spcomm: it needs no core, and is part of no deadlock. Each call is a run of its own, with
shared memory of its own, so that no remains of an earlier call can reach it; only the process stays, with its
variables.

Messages in:  ("begin", sys.path)  ("call", about, work) + segment  ("over",)
In a room:    ("memory", device, inode) + segment, of its box, before each ("call", about, work) of a run
Of map:       ("item", number, argument)  ("enough",)
Messages out: ("done", result or None)  ("failed", kind, detail, text, error or None)  ("figure", png)
              ("item", number, result)
"""

import ast
import linecache
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING

from spcomm import config, joining, mpi
from spcomm._core import exit_text
from spcomm._core.errors import WaitTimeoutError, shown
from spcomm.launch.base import nothing, report
from spcomm.notebook import channel, pickling

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from spcomm._core.comm import Comm
    from spcomm.launch.base.wire import Wire

FIGURES = "spcomm.notebook.figures"
_COROUTINE = 0x80  # inspect.CO_COROUTINE, without importing inspect
_LONG = 1 << 20  # characters shown of a traceback, or of a value's text

current: "Worker | None" = None  # this node


def serve() -> None:
    """The top level of a node. Returns when the caller closes the cluster."""
    signal.signal(signal.SIGINT, nothing)
    # Until now it was blocked: an earlier signal would have ended the node.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    global current
    current = Worker(channel.of_node("room" in sys.argv[1:]))
    while (found := current.wire.receive()) is not None:
        current.obey(*found)
    current.forget()


class Worker:
    """This node. `main` is the module in which cells run."""

    def __init__(self, wire: "Wire") -> None:
        self.wire = wire
        self.main = type(sys)("__main__")
        self.main.__builtins__ = sys.modules["builtins"]  # type: ignore[attr-defined]
        sys.modules["__main__"] = self.main
        self._member: config.Membership = config.membership()  # type: ignore[assignment]
        self.rank = self._member.rank
        self._process = os.getpid()
        self._comm: Comm | None = None
        self._memory = -1, 0, 0  # of the next call: descriptor, device, inode
        self._is_plain = False  # the caller reads plain values only
        self._runner: asyncio.Runner | None = None

    def obey(self, message: tuple, descriptors: "list[int]") -> None:
        verb = message[0]
        if verb == "begin":
            sys.path[:] = message[1]
        elif verb == "call":
            about = message[1]
            if descriptors:
                self._memory = descriptors[0], about["device"], about["inode"]
            self._call(about, message[2])
        elif verb == "memory":
            self._memory = descriptors[0], message[1], message[2]
        elif verb == "over":
            self.forget()

    def forget(self) -> None:
        """Give up the communicator of a call that has failed. Until now others could still receive its messages."""
        if self._comm is not None:
            try:
                self._comm.close(0.0)
            except WaitTimeoutError:
                pass  # the failure of the call is reported
            self._comm = None
        joining.stand_alone()

    # One call

    def _call(self, about: dict, work: tuple) -> None:
        self.forget()
        self._is_plain = about["plain"]
        sys.argv[:] = [about["name"]]
        doing = {
            "run": self._run,
            "cell": self._cell,
            "push": self._push,
            "pull": self._pull,
            "map": self._map,
            "names": self._names,
            "describe": self._describe,
        }
        try:
            self._join(about)
            result = self._interruptible(lambda: self._finished(doing[work[0]], work[1:]))
            answer = "done", result
            self._comm = None
        except BaseException as error:
            signal.signal(signal.SIGINT, nothing)
            answer = "failed", *_told_safely(error)
        _flush()
        if os.getpid() != self._process:
            os._exit(0)  # a fork that the program has made has come to the end of the call
        self.wire.send(answer)

    def _join(self, about: dict) -> None:
        (segment, device, inode), self._memory = self._memory, (-1, 0, 0)
        try:
            if about["alone"]:
                joining.stand_alone()
            else:
                member = self._member._replace(fd=segment, size=about["size"], device=device, inode=inode)
                self._comm = joining.rejoin(member, about["traced"])
        finally:
            if segment >= 0:
                os.close(segment)
        self.main.comm = self._comm  # type: ignore[attr-defined]

    def _interruptible(self, work: "Callable[[], object]") -> object:
        """Ctrl-C ends the work, and nothing else that the node does."""
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return work()
        finally:
            signal.signal(signal.SIGINT, nothing)

    def _finished(self, work: "Callable", arguments: tuple) -> object:
        """Do the work to its end. Its messages may still wait for room then, as at the end of a program."""
        try:
            result = work(*arguments)
        except SystemExit as error:
            if error.code not in (None, 0):
                raise
            result = None
        if self._comm is not None:
            joining.report_requests()
            joining.release(self._comm, config.close_timeout())
        return result

    # Work

    def _run(self, work: bytes, lines: "dict[str, list[str]]") -> bytes:
        _remember(lines)
        function, arguments = pickling.unpacked(work)  # type: ignore[misc]
        result = function(self._comm, *arguments)
        return pickling.packed(result, f"the result of node {self.rank}, a {type(result).__name__}")

    def _cell(self, source: str, name: str, shown: str, arguments: "list[str] | None") -> "bytes | None":
        if arguments is not None:
            sys.argv[1:] = arguments
            self.main.__file__ = name
        _remember({name: [f"{line}\n" for line in shown.split("\n")]})
        self._forget_figures()
        _check_mpi4py(source)
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        self._do(tree, name)
        value = self._do(ast.Expression(last.value), name) if last is not None else None
        self._show_figures()
        return None if value is None else _packed_to_show(value, self._is_plain)

    def _do(self, tree: "ast.Module | ast.Expression", name: str) -> object:
        """A part of a cell. It may await, as the notebook's own cells may."""
        mode = "exec" if isinstance(tree, ast.Module) else "eval"
        code = compile(tree, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        found = eval(code, self.main.__dict__)
        if not code.co_flags & _COROUTINE:
            return found
        if self._runner is None:  # one for all cells: the objects that a task awaits belong to its loop
            import asyncio  # for few, and slow

            self._runner = asyncio.Runner()
        return self._runner.run(found)

    def _push(self, work: bytes) -> None:
        self.main.__dict__.update(pickling.unpacked(work))  # type: ignore[call-overload]

    def _pull(self, name: str) -> bytes:
        if name not in self.main.__dict__:
            raise NameError(f"name {name!r} is not defined")
        return pickling.packed(self.main.__dict__[name], f"{name} of node {self.rank}")

    def _names(self, text: str) -> "bytes | None":
        from spcomm.notebook import completer

        return None if self.rank else pickling.packed(completer.names(self.main.__dict__, text), "names")

    def _describe(self, name: str) -> "bytes | None":
        from spcomm.notebook import completer

        return (
            None
            if self.rank
            else pickling.packed(completer.description_in(self.main.__dict__, name), "describe")
        )

    def _map(self, work: bytes, lines: "dict[str, list[str]]") -> None:
        """Items come one at a time. Between them Ctrl-C has nothing to end."""
        signal.signal(signal.SIGINT, nothing)
        _remember(lines)
        function = pickling.unpacked(work)
        while (found := self.wire.receive()) is not None and found[0][0] == "item":
            _verb, number, argument = found[0]
            result = self._interruptible(lambda: self._one(function, number, argument))  # noqa: B023 - called at once
            self.wire.send(("item", number, result))

    def _one(self, function: "Callable", number: int, argument: bytes) -> bytes:
        result = function(pickling.unpacked(argument))
        return pickling.packed(result, f"the result of item {number}, a {type(result).__name__}")

    def _show_figures(self) -> None:
        if FIGURES in sys.modules:
            sys.modules[FIGURES].show()

    def _forget_figures(self) -> None:
        """Those of a cell that has failed."""
        if FIGURES in sys.modules:
            sys.modules[FIGURES].forget()

    def send_figure(self, png: bytes) -> None:
        """Ctrl-C waits until all of it is sent."""
        noted: list[object] = []
        before = signal.signal(signal.SIGINT, lambda *arguments: noted.append(arguments))
        _flush()
        self.wire.send(("figure", png))
        signal.signal(signal.SIGINT, before)
        if noted:
            raise KeyboardInterrupt


def _told_safely(error: BaseException) -> tuple:
    """The exception is asked, and its lines, which may be the program's own and fail in turn."""
    try:
        return _told(error)
    except BaseException as another:
        name = type(error).__name__
        text = f"{name}: <cannot be shown: its repr raises {type(another).__name__}>\n"
        return report.RAISED, name, text.encode("utf-8", "replace"), None


def _told(error: BaseException) -> tuple:
    """The report on an exception: its kind (see `launch.base.report`), name, traceback, and itself."""
    error.__traceback__ = report.users_part(error.__traceback__)
    if isinstance(error, SystemExit):
        code = error.code
        exit_text.exited(error, code if isinstance(code, int) else 1)
        return report.EXITING, shown(code), b"", None
    exit_text.raised(error)
    kind, detail = report.kind_of(error)
    try:
        itself = pickling.packed(error, "")
    except BaseException:  # of the program's own methods
        itself = None
    # The hook in C would look for lines in files only.
    mpi.explain(error)
    text = _cut("".join(traceback.format_exception(error)))
    return kind, detail, text.encode("utf-8", "replace"), itself


def _packed_to_show(value: object, is_plain: bool) -> bytes:
    """Return the value of a cell, or a stand-in with the same display: for unpicklable values and results of plots."""
    if not _is_drawn(value):
        try:
            data = pickling.packed(value, "")
            if is_plain:
                pickling.unpacked(data, is_plain=True)
            return data
        except (TypeError, ValueError, MemoryError, pickling.NotPlainError):
            pass
    return pickling.packed(pickling.UnpicklableValue(_cut(repr(value))), "")


def _cut(text: str) -> str:
    """The beginning and the end of a very long text."""
    left_out = len(text) - _LONG
    return (
        text if left_out <= 0 else f"{text[: _LONG // 2]}\n… {left_out} characters …\n{text[-_LONG // 2 :]}"
    )


def _is_drawn(value: object) -> bool:
    """A part of a figure, with which the whole figure would travel."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_drawn, value))
    return type(value).__module__.partition(".")[0] == "matplotlib"


def _check_mpi4py(source: str) -> None:
    """Raise `ImportError` if a cell is about to import an mpi4py of another MPI."""
    if "mpi4py" not in source or "mpi4py" in sys.modules:
        return
    from spcomm.mpi import bindings

    complaint = bindings.complaint(dict(os.environ))
    if complaint:
        raise ImportError(complaint)


def _remember(lines: "dict[str, list[str]]") -> None:
    """So that tracebacks show the lines of files that only the caller has."""
    for name, text in lines.items():
        linecache.cache[name] = (sum(map(len, text)), None, text, name)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # the program has closed it, or put something else in its place
