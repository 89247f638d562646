# SPDX-License-Identifier: MIT
"""Which line of the user's own code is being run. Imported where nodes start: keep it small."""

import os
import sys

# The handlers of this package, which answer where a node is (launch.where): bits as in the core.
OWN_SIGNALS = 0

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.__file__) + os.sep


def own_signal(number: int) -> None:
    """Its handler calls nothing of spcomm."""
    global OWN_SIGNALS
    if number:
        OWN_SIGNALS |= 1 << (number - 1)


def is_users(path: str) -> bool:
    """Is this a file of the user's, or at least nobody's that can be named: neither ours nor Python's?"""
    return not path.startswith((_PACKAGE, "<frozen")) and (
        not path.startswith(_LIBRARY) or f"{os.sep}site-packages{os.sep}" in path
    )


def of_caller() -> "tuple[str, int, str]":
    """The innermost line of the user's code in this thread: file, line, function. Empty and 0: there is none."""
    frame = sys._getframe()
    while frame is not None:
        code = frame.f_code
        if is_users(code.co_filename) and not code.co_filename.endswith((".pyx", ".pxd")):
            return code.co_filename, frame.f_lineno, code.co_name
        frame = frame.f_back
    return "", 0, ""


def of_error(error: BaseException) -> "tuple[str, int, str]":
    """The innermost line of the user's code in an exception's traceback, in the same way."""
    found, trace = ("", 0, ""), error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_users(code.co_filename) and not code.co_filename.endswith((".pyx", ".pxd")):
            found = code.co_filename, trace.tb_lineno, code.co_name
        trace = trace.tb_next
    return found


def tail(path: str, most: int) -> bytes:
    """The path, or its end if it is longer than so many bytes."""
    return os.fsencode(path)[-most:]
