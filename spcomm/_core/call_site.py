# SPDX-License-Identifier: MIT
"""The user's own current line of code. Nodes import this at their start: keep it small."""

import os
import sys

# Signals whose handlers are this package's and send the node's line (launch.local.stack_probe): bits as in the core.
OWN_SIGNALS = 0

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Programs although they lie in the package: the examples of a wheel, and benchmark programs.
_PROGRAMS = tuple(os.path.join(_PACKAGE, *folder, "") for folder in (("data",), ("bench", "programs")))
_LIBRARY = os.path.dirname(os.__file__) + os.sep


def own_signal(number: int) -> None:
    """Note the signal number; its handler calls nothing of spcomm."""
    global OWN_SIGNALS
    if number:
        OWN_SIGNALS |= 1 << (number - 1)


def is_ours(path: str) -> bool:
    """Whether the file belongs to spcomm itself, not to a program."""
    return (path.startswith(_PACKAGE) and not path.startswith(_PROGRAMS)) or path.endswith((".pyx", ".pxd"))


def _is_pythons(path: str) -> bool:
    """Whether the file comes with Python."""
    return path.startswith((_LIBRARY, "<frozen")) and not _is_installed(path)


def _is_installed(path: str) -> bool:
    """Whether the file belongs to an installed package."""
    return f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path


def of_caller() -> "tuple[str, int, str]":
    """Return the innermost line of the user's code in this thread: file, line, function. Empty and 0: there is none.

    In a program that is itself an installed library, it is the innermost line of that.
    """
    frames, frame = [], sys._getframe()
    while frame is not None:
        frames.append((frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name))
        frame = frame.f_back
    if frames[-1][0] == "<string>" and "spcomm.launch.local.fork_server" in sys.modules:
        frames.pop()  # the first lines of the process that forked this node
    return _innermost(frames)


def of_error(error: BaseException) -> "tuple[str, int, str]":
    """Return the innermost line of the user's code in an exception's traceback, in the same way."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        # A jump back may have no line: an interrupt can come there.
        frames.append((code.co_filename, max(trace.tb_lineno or 0, 0), code.co_name))
        trace = trace.tb_next
    return _innermost(frames[::-1])


def _innermost(frames: "list[tuple[str, int, str]]") -> "tuple[str, int, str]":
    installed = ("", 0, "")
    for frame in frames:
        path = frame[0]
        if is_ours(path) or _is_pythons(path):
            continue
        if not _is_installed(path):
            return frame
        installed = installed if installed[1] else frame
    return installed


def tail(path: str, most: int) -> bytes:
    """Return the path, or its end if it is longer than that many bytes."""
    return os.fsencode(path)[-most:]
