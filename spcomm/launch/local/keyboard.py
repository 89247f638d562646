# SPDX-License-Identifier: MIT
"""Keyboards of debugged nodes: a terminal for each, joined to its tmux pane, and one pane that types to several.

The node is the leader of a session on a pseudo-terminal, so its debugger edits lines, sets Ctrl-C and runs its program
in the background as in any terminal. The launcher carries bytes both ways: from the pane's own terminal, which it has
made raw, to the node; and from the node to the pane, like any node's output.
"""

import fcntl
import os
import re
import termios
import tty
from typing import TYPE_CHECKING

from spcomm.launch.base.usage import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from spcomm.launch.base.loop import Loop
    from spcomm.launch.cmdline.groups import Group, Names

_READ = 65536
_INTERRUPT, _END = b"\x03", b"\x04"  # Ctrl-C, Ctrl-D
_OFF = b"\0"  # the control character of a terminal that no key produces
_ADDRESSED = re.compile(r"\s*(all|\d[\d,:-]*)\s*:(?:\s+(.*))?")  # `0-1: next`, or `0-1:` alone


class Keyboard:
    """The terminal of one debugged node, and the pane where it is shown."""

    def __init__(self, pane: str) -> None:
        self._pane = _open_terminal(pane)
        tty.setraw(self._pane)
        self.master, self.slave = os.openpty()  # the first becomes a stream of output, the second the node's
        self._keys = os.dup(self.master)
        os.set_blocking(self._keys, False)
        self._typed = bytearray()  # bytes that do not fit into the node's terminal yet

    def start(self, loop: "Loop", closed: "Callable[[], None]") -> None:
        """Begin to carry keyboard input. `closed` is called once if the pane is closed."""
        self._loop = loop
        self._closed = closed
        self._resize()
        loop.add(self._pane, self._relay)

    def descriptors(self) -> "list[int]":
        """Return the descriptors that become the node's standard streams."""
        return [self.slave] * 3

    def type(self, data: bytes) -> None:
        """Pass keyboard input to the node."""
        self._typed += data
        self._flush()

    def close(self) -> None:
        for fd in (self._pane, self._keys):
            os.close(fd)

    def _relay(self) -> None:
        data = _read(self._pane)
        if data == b"":
            self._loop.remove(self._pane)
            self._closed()
        elif data:
            self._resize()
            self.type(data)

    def _flush(self) -> None:
        try:
            while self._typed:
                del self._typed[: os.write(self._keys, self._typed)]
        except BlockingIOError:
            self._loop.add(self._keys, self._flush, write=True)
            return
        except OSError:  # the node has ended
            self._typed.clear()
        self._loop.remove(self._keys)

    def _resize(self) -> None:
        """Copy the pane's size. tmux reports a new size only to the pane's own process, so each key compares it."""
        try:
            size = fcntl.ioctl(self._pane, termios.TIOCGWINSZ, bytes(8))
            if size != fcntl.ioctl(self._keys, termios.TIOCGWINSZ, bytes(8)):
                fcntl.ioctl(self._keys, termios.TIOCSWINSZ, size)
        except OSError:
            pass


class ControlPane:
    """A pane whose lines go to several debugged nodes at once."""

    def __init__(
        self, pane: str, keyboards: "dict[int, Keyboard]", groups: "list[Group]", names: "Names"
    ) -> None:
        self._pane = _open_terminal(pane)
        _deliver_control_keys(self._pane)
        self._keyboards = keyboards
        self._groups = groups
        self._names = names
        self._chosen = sorted(keyboards)

    def start(self, loop: "Loop") -> None:
        self._loop = loop
        example = self._names.nodes(self._chosen[:1])
        rank = self._address(self._chosen[0])
        self._say(
            f"A line typed here goes to {self._names.nodes(self._chosen)}, and so does Ctrl-C.\n"
            f"{rank}: next   goes to {example} alone; {rank}: without a command chooses it for the lines that follow.\n"
        )
        self._prompt()
        loop.add(self._pane, self._obey)

    def close(self) -> None:
        os.close(self._pane)

    def _obey(self) -> None:
        data = _read(self._pane)
        if data is None:
            return
        if not data:  # the pane was closed; each node still has its own
            self._loop.remove(self._pane)
            return
        if data.endswith((_INTERRUPT, _END)):  # as at a terminal, text before Ctrl-C is dropped
            self._type(self._chosen, data[-1:])
            self._say("\n")
        else:
            self._line(data.decode("utf-8", "replace").rstrip("\n"))
        self._prompt()

    def _line(self, line: str) -> None:
        found = _ADDRESSED.fullmatch(line)
        chosen = self._chosen if found is None else self._find(found[1])
        if not chosen:
            every = self._names.nodes(sorted(self._keyboards))
            self._say(f"{found[1]}: not sent; panes have {every}\n")  # type: ignore[index]
        elif found is not None and found[2] is None:
            self._chosen = chosen
        else:
            self._type(chosen, (line if found is None else found[2]).encode() + b"\n")

    def _find(self, text: str) -> "list[int]":
        """Return the addressed nodes; none unless all of them have a pane."""
        from spcomm.launch.cmdline.ranks import ranks

        every = set(self._keyboards)
        if text == "all":
            return sorted(every)
        try:
            chosen = ranks("the pane", text).indices(self._groups)
        except UsageError:
            return []
        return sorted(chosen) if chosen <= every else []

    def _type(self, chosen: "list[int]", data: bytes) -> None:
        for index in chosen:
            self._keyboards[index].type(data)

    def _prompt(self) -> None:
        self._say(f"{self._names.nodes(self._chosen)}> ")

    def _address(self, index: int) -> str:
        """Return the name of a node in RANKS."""
        return self._names.label(index).decode().strip("[] ")

    def _say(self, text: str) -> None:
        try:
            os.write(self._pane, text.encode())
        except OSError:
            pass  # the pane was closed, or its reader is too slow


def _open_terminal(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(
            f"spcomm run: --window: the terminal of a pane cannot be opened ({error.strerror}); leave --debug or "
            "--window out"
        ) from None


def _read(fd: int) -> "bytes | None":
    """Return the keys typed; empty when the terminal is gone, None when there are none yet."""
    try:
        return os.read(fd, _READ)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _deliver_control_keys(fd: int) -> None:
    """Have Ctrl-C and Ctrl-D end a line, as its last byte, instead of acting themselves."""
    modes = termios.tcgetattr(fd)
    modes[3] &= ~termios.ISIG
    keys = modes[6]
    keys[termios.VEOF], keys[termios.VEOL], keys[termios.VEOL2] = _OFF, _INTERRUPT, _END
    termios.tcsetattr(fd, termios.TCSANOW, modes)
