# SPDX-License-Identifier: MIT
"""Process functions of the operating system that Python lacks."""

import _signal
import os
import select
import sys
import time

from spcomm.launch.base import nothing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# A forked node answers it with its current line (see local.stack_probe); 0 where no signal is free, or the system
# does not report the sender of an answer.
WHERE_SIGNAL = _signal.SIGRTMIN + 5 if sys.platform.startswith("linux") else 0

# A batch system's warning before the time limit; the launcher forwards them to its nodes.
# The processes between launcher and nodes block them, in case it sends them to all processes of the job.
FORWARDED = frozenset({_signal.SIGUSR1, _signal.SIGUSR2})

# A scheduler, or a terminal that closes, sends these to all processes of a run, one after the other, in any order.
_SHARED = frozenset({_signal.SIGTERM, _signal.SIGHUP})
_SHARED_MS = 500  # by then every process has received it

# The signals whose being ignored is inherited on purpose: nohup ignores the first, a shell without job control the
# others for a command that it starts in the background.
_KEPT = ("SIGHUP", "SIGINT", "SIGQUIT")
_PYTHONS = ("SIGPIPE", "SIGXFSZ")  # that each Python ignores by itself

_TRACKER_S = 2.0  # seconds for trackers of multiprocessing to remove the rest

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def signal_pipe(numbers: "Iterable[int]") -> "tuple[int, int]":
    """Turn these signals into bytes in a pipe, for an event loop; return its ends. Ignored signals stay ignored."""
    ends = read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    _signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in numbers:
        if _signal.getsignal(number) != _signal.SIG_IGN or number == _signal.SIGCHLD:
            _signal.signal(number, nothing)
    return ends


def start_clean() -> None:
    """Undo what the parent has blocked or ignored, as far as it did not mean its children: see `_KEPT`.

    Each command begins with it, in its main thread. Processes that spcomm starts in other programs get the same from
    `CLEAN`.
    """
    for number in _signal.valid_signals() - _names(*_KEPT, *_PYTHONS):
        if _signal.getsignal(number) == _signal.SIG_IGN:
            _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def _names(*names: str) -> "set[int]":
    return {getattr(_signal, name) for name in names if hasattr(_signal, name)}


# For `os.posix_spawn` of a process between launcher and nodes: as `start_clean` leaves it, and deaf to `FORWARDED`.
CLEAN = {
    "setsigmask": FORWARDED,
    "setsigdef": sorted(_signal.valid_signals() - _names(*_KEPT, "SIGKILL", "SIGSTOP")),
}


def await_shared_signal(fd: int, status: int) -> bool:
    """Wait briefly for a signal that has already killed another process: if it was sent to all, it is the cause.

    `fd` becomes readable when this process gets a signal; `status` is the other process's wait status. Returns False at
    once if something else ended that process.
    """
    if status & 0x7F not in _SHARED:
        return False
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll(_SHARED_MS)
    return True


def reap(pid: int) -> int:
    """Wait for the end of a child, and return its wait status; 0 if it is unknown.

    The program in whose process a `Cluster` lives may ignore SIGCHLD, or reap all children itself.
    """
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return 0


def tell(pid: int, number: int) -> None:
    """Send a signal to a child that may have ended, and may have been reaped as in `reap`."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def die_with(parent: int, signal_number: int) -> None:
    """Have the kernel send `signal_number` (0: none) when the parent of this process ends (on Linux).

    The parent may be gone before the request is made, so its id is compared afterwards.
    """
    _prctl(_PR_SET_PDEATHSIG, signal_number)
    if signal_number and os.getppid() != parent:
        os.kill(os.getpid(), signal_number)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends. Linux; else no effect."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def bind(cpus: "tuple[int, ...]") -> None:
    """Stay on these processors. It is no error if they have been taken away meanwhile."""
    try:
        os.sched_setaffinity(0, cpus)
    except OSError:
        pass


def open_standard_streams() -> None:
    """Open missing standard streams, so that this process does not take a pipe for one of them."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # nor must the fork server


def close_inherited(kept: "Iterable[int]") -> None:
    """Close the descriptors of this process but the standard streams and these; a new process calls it first."""
    spared = {0, 1, 2, *kept}
    for path in ("/proc/self/fd", "/dev/fd"):
        try:
            found = [int(name) for name in os.listdir(path)]
        except OSError:
            continue
        for fd in found:
            try:
                if fd not in spared:
                    os.close(fd)
            except OSError:
                pass  # it was that of the folder
        return


def children() -> "list[int]":
    """Return the children of this process, ended or not, as far as the system lists them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except (OSError, ValueError):
        return []


def end_children(spared: "set[int]", group: "int | None" = None) -> None:
    """Kill and reap all children but these, and their orphans; with `group` only those in it.

    Resource trackers of multiprocessing come last: they end by themselves once the processes that they serve are gone,
    and remove the semaphores and shared memory left by them. Without `group`, this waits for them.
    """
    trackers: set[int] = set()
    while found := {pid for pid in children() if pid not in spared and _is_in(pid, group)} - trackers:
        trackers |= {pid for pid in found if _is_tracker(pid)}
        for pid in found - trackers:
            spared = spared | {pid} if not _end(pid) else spared
    deadline = time.monotonic() + _TRACKER_S
    for pid in trackers if group is None else ():
        while not _has_ended(pid) and time.monotonic() < deadline:
            time.sleep(0.002)
        _end(pid)


def _end(pid: int) -> bool:
    """Kill and reap a child. False: it is not ours."""
    try:
        os.kill(pid, _signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        return False
    return True


def _has_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _is_in(pid: int, group: "int | None") -> bool:
    try:
        return group is None or os.getpgid(pid) == group
    except OSError:
        return False


def _is_tracker(pid: int) -> bool:
    """Whether this is a resource tracker of multiprocessing, or of joblib.

    A process that has just called `exec` has no arguments for a moment: whoever started it goes on before they are set,
    and can end sooner.
    """
    deadline = time.monotonic() + _TRACKER_S
    try:
        while not (arguments := _arguments(pid)) and not _has_ended(pid) and time.monotonic() < deadline:
            time.sleep(0.001)
        return b"resource_tracker import main" in arguments
    except OSError:
        return False


def _arguments(pid: int) -> bytes:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


def exit_reason(status: int) -> int:
    """Return the exit code of a wait status, or minus the signal."""
    return -(status & 0x7F) if status & 0x7F else status >> 8


def signal_name(number: int) -> str:
    """Return `SIGSEGV` for 11."""
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def how_ended(status: int) -> str:
    """Return the words for a wait status: "was killed by SIGSEGV", or "ended with code 3"."""
    if status & 0x7F:
        return f"was killed by {signal_name(status & 0x7F)}"
    return f"ended with code {status >> 8}"


def end_by_interrupt() -> None:
    """Have SIGINT end this process at once: a traceback of it would say nothing to the user."""
    if _signal.getsignal(_signal.SIGINT) == _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def interpreter_flags() -> "list[str]":
    """Return the options that give another interpreter the settings of this one.

    The same list as the standard library's `subprocess` keeps for `multiprocessing`, without importing it.
    """
    flags, options = sys.flags, []
    for name, letter in _FLAG_LETTERS.items():
        options += ["-" + letter * count] if (count := int(getattr(flags, name, 0))) > 0 else []
    if flags.isolated:
        options.append("-I")
    else:
        for name, letter in (("ignore_environment", "E"), ("no_user_site", "s"), ("safe_path", "P")):
            options += ["-" + letter] if getattr(flags, name, 0) else []
    for warning in _warning_options(flags):
        options.append("-W" + warning)
    for name, value in sys._xoptions.items():
        options.append(f"-X{name}" if value is True else f"-X{name}={value}")
    return options


def _prctl(option: int, value: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    global _libc
    if _libc is None:
        import ctypes

        _libc = ctypes.CDLL(None)
    _libc.prctl(option, value, 0, 0, 0)


_libc = None

_FLAG_LETTERS = {
    "debug": "d",
    "dont_write_bytecode": "B",
    "no_site": "S",
    "verbose": "v",
    "bytes_warning": "b",
    "quiet": "q",
    "optimize": "O",
}


def _warning_options(flags: object) -> "list[str]":
    """Return `sys.warnoptions` without the additions of -b and -X dev."""
    options = list(sys.warnoptions)
    implied = (
        ["error::BytesWarning" if flags.bytes_warning > 1 else "default::BytesWarning"]
        if flags.bytes_warning
        else []
    )
    implied += ["default"] if flags.dev_mode else []
    for option in implied:
        if option in options:
            options.remove(option)
    return options


def state_of(process: int) -> str:
    """Return the kernel's letter for the state of a process: R runs, S and D sleep, T is stopped; empty: unknown."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return chr(file.read().rpartition(b")")[2].split()[0][0])
    except (OSError, IndexError):
        return ""


def scheduled(pid: int) -> "tuple[int, int, int]":
    """Return how the kernel has scheduled the main thread of a process that has not been reaped.

    Nanoseconds on a core, nanoseconds ready without one, and the number of turns on a core; zeros: unknown.
    """
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            ran_ns, queued_ns, turns = map(int, file.read().split())
    except (OSError, ValueError):
        return 0, 0, 0
    return ran_ns, queued_ns, turns
