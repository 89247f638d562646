# SPDX-License-Identifier: MIT
"""Reports of a node that an exception ends it, sent before it has ended.

Between an uncaught exception and the exit status lie threads to join and exit functions to run, and one of these
reports to the other nodes that this one has finished. They would raise `NodeLostError`, and could even be gone first.
So a node reports an uncaught exception at once, over one pipe that its group shares. The traceback travels in the
report and not through stderr: the launcher can show it last, and output on stderr is not held back.

A report is a number of frames of at most PIPE_BUF bytes, which the kernel never mixes with other writers'
frames: 4 bytes rank, 1 byte kind, 2 bytes length, then the payload. The kind comes first, TEXT frames follow.
"""

import _signal
import errno
import os
import sys

TYPE_CHECKING = False  # importing typing itself takes time
if TYPE_CHECKING:
    import types

HEADER = 7
_ROOM = 4096 - HEADER

TEXT = b"T"  # a piece of a traceback
RAISED = b"E"  # an uncaught exception; payload: its type's name
LOST = b"L"  # an uncaught consequence of another node's failure (NodeLostError), or an exception raised because of it
CUT = b"C"  # the same of a lost connection (ConnectionLostError)
INTERRUPTED = b"K"  # KeyboardInterrupt; payload: where it was raised
EXITING = b"X"  # sys.exit() with a code that is not 0; payload: the code
CRASHED = b"S"  # killed by a signal, as its box reports; payload: its last line

KINDS = (TEXT, RAISED, LOST, CUT, INTERRUPTED, EXITING, CRASHED)


def interrupts(kind: bytes, detail: str) -> bool:
    """Whether a node reports that it ends because of SIGINT; some programs handle it and exit with the code for it."""
    return kind == INTERRUPTED or (kind == EXITING and detail == "130")


def is_interrupt(status: int) -> bool:
    """Whether a process with this wait status has ended because of SIGINT."""
    return status in (_signal.SIGINT, 128 + _signal.SIGINT << 8)


_target: "tuple[int, int] | None" = None  # descriptor and rank
_pipe = (0, 0)  # device and inode of the descriptor: a program may close it, and open files
_owner = 0


class Reader:
    """The launcher's end of a group's pipe."""

    def __init__(self) -> None:
        self.fd, self.write = os.pipe()
        os.set_blocking(self.fd, False)
        self.ended = False
        self._data = b""

    def close(self) -> None:
        os.close(self.fd)

    def read(self) -> "list[tuple[int, bytes, bytes]]":
        """Return the frames that have arrived: rank, kind, payload. Does not block."""
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return []
        self.ended = not data
        found, self._data = frames(self._data + data)
        return found


def frames(data: bytes) -> "tuple[list[tuple[int, bytes, bytes]], bytes]":
    """Return the whole frames in it, rank, kind and payload of each, and the rest."""
    found, at = [], 0
    while len(data) - at >= HEADER:
        end = at + HEADER + int.from_bytes(data[at + 5 : at + 7], "little")
        if len(data) < end:
            break
        found.append(
            (int.from_bytes(data[at : at + 4], "little"), data[at + 4 : at + 5], data[at + HEADER : end])
        )
        at = end
    return found, data[at:]


def aim(fd: int, rank: int) -> None:
    """Send reports of this process to `fd` from now on."""
    global _target, _owner, _pipe
    os.set_inheritable(fd, False)
    _target = fd, rank
    _pipe = _identity(fd)
    _owner = os.getpid()


def watch(fd: int, rank: int) -> None:
    """Like `aim`, for a program whose top level is not ours: reports from `sys.excepthook`."""
    aim(fd, rank)
    previous = sys.excepthook

    def hook(kind: type, error: BaseException, trace: object) -> None:
        with IgnoreInterrupts():
            uncaught(error, previous)

    sys.excepthook = hook


def trim() -> None:
    """Have `sys.excepthook` show uncaught exceptions without our frames, in a program that no launcher watches."""
    previous = sys.excepthook

    def hook(kind: type, error: BaseException, trace: "types.TracebackType | None") -> None:
        endings = _endings()
        if endings is not None and _target is None:
            endings.add_advice(error)
            trace = error.__traceback__ = users_part(trace) or trace
        previous(kind, error, trace)

    sys.excepthook = hook


class IgnoreInterrupts:
    """Ignore Ctrl-C in this context, while a node reports why it ends: it ends anyway."""

    def __enter__(self) -> None:
        self._handler = _signal.getsignal(_signal.SIGINT)
        if self._handler is _signal.default_int_handler:
            _signal.signal(_signal.SIGINT, _signal.SIG_IGN)

    def __exit__(self, *_error: object) -> None:
        if (
            self._handler is _signal.default_int_handler
            and _signal.getsignal(_signal.SIGINT) == _signal.SIG_IGN
        ):
            _signal.signal(_signal.SIGINT, self._handler)


def leaving(error: SystemExit, code: int) -> None:
    """Report that the program has called `sys.exit(code)`."""
    endings = _endings()
    if endings is not None:
        endings.exited(error, code)
    if code:
        _send(EXITING, str(code).encode())


def uncaught(error: BaseException, hook: object = None) -> None:
    """Show an uncaught exception as `sys.excepthook` would, through the launcher if it listens."""
    hook = hook or sys.excepthook
    if not _listening():
        hook(type(error), error, error.__traceback__)
        return
    error.__traceback__ = users_part(error.__traceback__)
    if isinstance(error, ModuleNotFoundError):
        from spcomm import mpi

        mpi.explain(error)
    endings = _endings()
    if endings is not None:
        endings.raised(error)
    kind, detail = kind_of(error)
    sent = _send(kind, detail.encode("utf-8", "replace")[:_ROOM])  # first, so that the launcher knows at once
    stderr = sys.stderr
    text = _shown(error, hook)
    sent = sent and all(_send(TEXT, text[at : at + _ROOM]) for at in range(0, len(text), _ROOM))
    if not sent and stderr is not None:  # the launcher is gone, and this process soon will be
        stderr.write(text.decode("utf-8", "replace"))


def _endings() -> "types.ModuleType | None":
    """Return the place of a note to the nodes that need this one, which read it at once. None: it is not a node."""
    return sys.modules.get("spcomm._core.exit_text")


def _listening() -> bool:
    return _target is not None and _owner == os.getpid()


def _shown(error: BaseException, hook: object) -> bytes:
    """Return the hook's output, as bytes in stderr's encoding."""
    import io

    stderr = sys.stderr
    encoding = getattr(stderr, "encoding", None) or "utf-8"
    errors = getattr(stderr, "errors", None) or "backslashreplace"
    sys.stderr = catcher = io.StringIO()
    try:
        hook(type(error), error, error.__traceback__)
    finally:
        if sys.stderr is catcher:
            sys.stderr = stderr
    return as_sent(catcher.getvalue()).encode(encoding, errors)


def moved(here: str, sent_from: str) -> "dict[str, str]":
    """Return variables for nodes whose program was sent from a folder of another machine to one that is here."""
    return {"SPCOMM_ROOM_FOLDER": here, "SPCOMM_SENT_FROM": sent_from}


def as_sent(text: str) -> str:
    """Return a traceback with the paths that its reader knows: those of the machine from which the program was sent."""
    here, sent_from = os.environ.get("SPCOMM_ROOM_FOLDER"), os.environ.get("SPCOMM_SENT_FROM")
    if not here or not sent_from:
        return text
    for between in (f"{os.sep}{os.curdir}{os.sep}", os.sep):  # the first one of an executed program
        text = text.replace(here + between, sent_from.rstrip(os.sep) + os.sep)
    return text


def kind_of(error: BaseException) -> "tuple[bytes, str]":
    """Return the kind of an exception's report, and its detail."""
    if isinstance(error, KeyboardInterrupt) or _is_mpi_interrupt(error):
        return INTERRUPTED, place(error)
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        bases = [base.__name__ for base in type(cause).__mro__ if base.__module__.startswith("spcomm")]
        if "ConnectionLostError" in bases:
            return CUT, type(error).__name__
        is_own = "SpcommError" in bases and cause.is_consequence  # type: ignore[attr-defined]
        if is_own or _is_mpi_consequence(cause):
            return LOST, type(error).__name__
        cause = cause.__cause__ or cause.__context__
    return RAISED, type(error).__name__


def _is_mpi_interrupt(error: BaseException) -> bool:
    """Whether it is an exception of mpi4py because SIGINT came in a call of MPI."""
    return type(error).__module__ == "mpi4py.MPI" and str(error).endswith(": interrupted by Ctrl-C")


def _is_mpi_consequence(error: BaseException) -> bool:
    """Whether it is an exception of mpi4py because another node has failed."""
    if type(error).__module__ != "mpi4py.MPI" or not hasattr(error, "Get_error_class"):
        return False
    return error.Get_error_class() == getattr(sys.modules["mpi4py.MPI"], "ERR_PROC_ABORTED", None)


def place(error: BaseException) -> str:
    """Return `file.py:12 in step`: the innermost line of the user's own code in a traceback.

    Outside of functions none is named. If there is no such line, as in a program that is part of a library, it is the
    innermost line outside spcomm.
    """
    own = other = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        inside = "" if code.co_name.startswith("<") else f" in {code.co_name}"
        line = f"{os.path.basename(code.co_filename)}:{trace.tb_lineno}{inside}"
        if not _is_ours(trace.tb_frame):
            other = line
            own = own if _is_library(code.co_filename) else line
        trace = trace.tb_next
    return own or other


def users_part(trace: "types.TracebackType | None") -> "types.TracebackType | None":
    """Return a traceback without our frames: those before the program, below its calls, and around its handlers."""
    theirs = []
    while trace is not None:
        theirs += [] if _is_ours(trace.tb_frame) else [trace]
        trace = trace.tb_next
    for entry, following in zip(theirs, [*theirs[1:], None], strict=False):
        entry.tb_next = following
    return theirs[0] if theirs else None


def _is_ours(frame: "types.FrameType") -> bool:
    """Recognize a compiled module by its module name alone: its file has the name from the time of compilation."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
    module = frame.f_globals.get("__name__")
    is_named_so = isinstance(module, str) and module.partition(".")[0] == "spcomm"
    return is_named_so or frame.f_code.co_filename.startswith(package)


def _is_library(path: str) -> bool:
    """Whether a file is Python's own, or installed beside it."""
    parts = path.split(os.sep)
    return (
        path.startswith(("<frozen", os.path.dirname(os.__file__) + os.sep))
        or "site-packages" in parts
        or "dist-packages" in parts
    )


def _send(kind: bytes, payload: bytes) -> bool:
    if not _listening():
        return False
    fd, rank = _target
    frame = rank.to_bytes(4, "little") + kind + len(payload).to_bytes(2, "little") + payload
    try:
        if _identity(fd) != _pipe:
            return False
        os.write(fd, frame)
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.EBADF):
            return False
        raise
    return True


def _identity(fd: int) -> "tuple[int, int]":
    found = os.fstat(fd)
    return found.st_dev, found.st_ino
