# SPDX-License-Identifier: MIT
"""The code that a user gives, and the notation for the place of a server."""

import os
import select
import signal
import sys

from spcomm.launch.base.process import FORWARDED
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.values import is_host
from spcomm.launch.room import join_code

PORT = 7726
TRIES = 3
_LINE_MOST = 4096


def code(command: str, where: str, interrupt: int = -1) -> str:
    """Read a room's code from the environment, else from standard input. Raises `UsageError`.

    `interrupt`: a descriptor that can be read when there is a signal, if signals do nothing else.

    The variable is taken out: nodes and other machines get copies of the environment.
    """
    given = os.environ.pop(join_code.VARIABLE, None) or None
    if given is not None:
        return _read(command, given, f" (in ${join_code.VARIABLE})")
    if not os.isatty(0):
        line = _line(command, interrupt)
        if not line.strip():
            raise UsageError(
                f"{command}: needs the code of {where}: set {join_code.VARIABLE}, or write it to its standard input"
            )
        return _read(command, line, "")
    for attempt in range(TRIES):
        sys.stderr.write(f"The code of {where}, six words: ")
        sys.stderr.flush()
        line = _line(command, interrupt)
        if not line:
            break
        try:
            return _read(command, line, "")
        except UsageError as error:
            if attempt == TRIES - 1:
                raise
            sys.stderr.write(f"{error}\n")
    raise UsageError(f"{command}: there was no code")


def _line(command: str, interrupt: int) -> str:
    """Read one line of standard input, and no more: the rest may be for the program."""
    found = b""
    while not found.endswith(b"\n") and len(found) < _LINE_MOST:
        wait(command, 0, interrupt)
        try:
            byte = os.read(0, 1)
        except OSError:
            byte = b""
        if not byte:
            break
        found += byte
    return found.decode("utf-8", "replace")


def wait(command: str, fd: int, interrupt: int) -> None:
    """Wait until a descriptor can be read. `UsageError`: there is a signal."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if interrupt >= 0:
        poll.register(interrupt, select.POLLIN)
    while any(found == interrupt for found, _event in poll.poll()):
        interrupted(command, interrupt)


def interrupted(command: str, interrupt: int) -> None:
    """A signal has come before anything was started. Raises `UsageError`, unless it was Ctrl-Z."""
    number = os.read(interrupt, 1)[0]
    if number == signal.SIGTSTP:
        os.kill(os.getpid(), signal.SIGSTOP)
        return
    if number in FORWARDED:  # there is no node yet
        return
    how = "interrupted by Ctrl-C" if number == signal.SIGINT else f"told to end by signal {number}"
    raise UsageError(f"{command}: {how}; nothing was started (exit code {128 + number})", 128 + number)


def _read(command: str, text: str, where: str) -> str:
    try:
        return join_code.read(text)
    except join_code.CodeError as error:
        raise UsageError(f"{command}: {error}{where}") from None


def place(command: str, text: str, port: int = PORT, least: int = 1) -> "tuple[str, int]":
    """`HOST` or `HOST:PORT`. Raises `UsageError`."""
    host, colon, digits = text.partition(":")
    if colon:
        port = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 6 else -1
    if (
        not host
        or host.startswith("-")
        or not is_host(host)
        or any(letter.isspace() for letter in host)
        or not least <= port < 65536
    ):
        raise UsageError(
            f"{command}: {text}: is neither a host nor HOST:PORT, as in alpha or alpha:{PORT}; ports end at 65535"
        )
    return host, port


def spelt(address: "tuple[str, int]") -> str:
    return f"{address[0]}:{address[1]}"
