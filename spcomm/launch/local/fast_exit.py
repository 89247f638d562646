# SPDX-License-Identifier: MIT
"""Makes the normal end of a forked Python process cheap, without changing its visible effects.

At finalization Python clears every module, frees all module contents, then takes itself apart. In a forked node nearly
all of that is memory shared with the fork server, so the kernel has to copy each page only for it to be thrown away:
with NumPy imported 2,600 pages and 5 of 6 milliseconds. None of it is visible to a program. So, when all threads are
joined, all exit functions have run and the streams are flushed,

1. modules which the *fork server* imported are taken out of `sys.modules`, and an object that is never freed keeps
   them alive. Everything that the program itself created or imported is finalised as usual: its globals are cleared,
   its objects are collected, its files are flushed and closed (1,400 pages, 2 ms);
2. once Python has cleared all modules, and the `sys` module as the last but one, the program is completely gone, and
   the process leaves by C's `exit` instead of taking the interpreter apart. Exit handlers of C libraries still run
   (650 pages, 1 ms). With -X dev, and where the exit status is not known beforehand, Python takes itself apart.
"""

import atexit
import gc
import io
import os
import signal
import sys

_BASIC = ("sys", "builtins")  # always finalised, last
_CLEARED = (*_BASIC, "__main__")

_kept: "dict[str, object]" = {}
_armed_in = 0
_status: "int | None" = None
_exit = None


def prepare() -> None:
    """Register in the fork server, before it imports anything: exit functions run last in, first out."""
    atexit.register(_spare)


def seal() -> None:
    """Freeze in the fork server, after its imports: the garbage collector then ignores all existing objects."""
    global _exit
    if sys.implementation.name == "cpython" and not sys.flags.dev_mode:
        import ctypes

        _exit = ctypes.PyDLL(None).exit
    _kept.update((name, module) for name, module in sys.modules.items() if name not in _CLEARED)
    ring: list[object] = [_kept]
    ring.append(ring)  # a cycle in the permanent generation keeps itself and the modules behind it for ever
    del ring
    gc.freeze()


def arm() -> None:
    """Enable `_spare` in this process, a forked node."""
    global _armed_in
    _armed_in = os.getpid()


def expect(status: int) -> None:
    """Note that the program has ended, and Python will exit with `status` unless its streams cannot be flushed."""
    global _status
    _status = status


def _spare() -> None:
    """Run as the last exit function."""
    if _armed_in != os.getpid():
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a KeyboardInterrupt could no longer be caught
    modules = sys.modules
    for name, module in list(modules.items()):
        if name not in _kept and name not in _BASIC:
            _flush_files(module)
    for name, module in _kept.items():
        if modules.get(name) is module:
            del modules[name]
    if _exit is not None and _status is not None and _streams_are_flushed():
        sys.spcomm_last = _Last()  # the last name in sys, so the last to be cleared


class _Last:
    """Its end is the end of the process. It keeps references to all its needs: modules are empty by then."""

    def __init__(self) -> None:
        self._exit, self._status, self._getpid, self._pid = _exit, _status, os.getpid, _armed_in

    def __del__(self) -> None:
        if self._pid == self._getpid():
            self._exit(self._status)


def _streams_are_flushed() -> bool:
    """Whether the streams can be flushed; if not, Python's own report and exit status are wanted."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except Exception:
        return False
    return True


def _flush_files(module: object) -> None:
    """Write the buffers of a module's open files, in case the module outlives the end.

    It does if an object that the fork server imported refers to its functions, as after numpy.set_printoptions.
    """
    for value in list(getattr(module, "__dict__", {}).values()):
        if isinstance(value, io.IOBase):
            try:
                value.flush()
            except (OSError, ValueError):
                pass  # closed, or an error that Python meets again when it closes the file
