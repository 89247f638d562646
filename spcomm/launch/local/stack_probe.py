# SPDX-License-Identifier: MIT
"""Asks running nodes for their current lines, as far as these can be known.

A forked Python node has a handler (`faulthandler`, in C: it answers from within a wait or a computation, too)
that writes its stack into a socket that all nodes share. The kernel reports the writing process (SO_PASSCRED), so a
late answer, from a node that had no core, is not taken for another node's.
A node that crashes (SIGSEGV and the like) also writes its stack there, unasked.
"""

import _socket
import os
import re
import select
import sys
import time
from collections.abc import Callable

from spcomm.launch.base import wire
from spcomm.launch.base.process import WHERE_SIGNAL
from spcomm.launch.cmdline.groups import ALONE, Names
from spcomm.text import aligned

# Seconds without any answer: nodes, and the processes that signal them, may have to wait for a core of a busy machine.
# Only nodes that block the signal take that long otherwise: stopped nodes are not asked.
_PATIENCE = 2.0
_TOTAL = 3.0  # and for all
_LOOK = 0.001  # seconds between two checks whether an answer has ended
_AT_ONCE = 8  # nodes that may answer at the same time: the socket holds some hundred pieces, the rest is lost
_LINE = re.compile(r'^  File "([^"\n]+)", line ([0-9]+) in (.+)\n', re.MULTILINE)  # whole ones only
WORK = "work()"  # before the line, separated by two blanks: a node in declared work
_CRASH = b"Fatal Python error"  # faulthandler's first words
_CREDENTIALS = 12  # bytes of a struct ucred: process, user, group


class ProbeReplies:
    """The pipe to which nodes write, and the data received from it."""

    def __init__(self) -> None:
        self._read, self._write = wire.opened(_socket.socketpair, _socket.AF_UNIX, _socket.SOCK_STREAM)
        if hasattr(_socket, "SO_PASSCRED"):  # otherwise no node is asked
            self._read.setsockopt(_socket.SOL_SOCKET, _socket.SO_PASSCRED, 1)
        for end in (self._read, self._write):
            end.setblocking(False)  # of the nodes' end: a node never waits for a reader
        self._crashes: dict[int, bytes] = {}  # process -> stack
        self._poll = select.poll()
        self._poll.register(self._read.fileno(), select.POLLIN)

    def fileno(self) -> int:
        """The nodes' end, until `close_theirs`."""
        return self._write.fileno()

    def close_theirs(self) -> None:
        self._write.close()

    def close(self) -> None:
        self._read.close()

    def ask(
        self, poke: "Callable[[int, int], None]", nodes: "list[int]", processes: "dict[int, int]"
    ) -> "dict[int, str]":
        """Return `{node: "ring.py:12 in step"}` for those that answered in time. `poke(node, signal)` asks one."""
        self._hear(0)  # late answers to the last question
        texts = {processes[node]: b"" for node in nodes}
        left, silent = list(nodes), set[int]()  # not asked yet; asked, without an answer
        end = time.monotonic() + _TOTAL
        while (left or silent) and time.monotonic() < end:
            while left and len(silent) < _AT_ONCE:
                poke(left[0], WHERE_SIGNAL)
                silent.add(processes[left.pop(0)])
            heard = self._add(texts, _PATIENCE)
            silent = {process for process in silent if heard and not texts[process]}
        # No node is signalled in the middle of an answer: a system call interrupted by this handler goes on after it,
        # even if a Ctrl-C has come meanwhile, which the program would not notice.
        while any(map(_is_answering, texts)) and time.monotonic() < end:
            self._add(texts, _LOOK)
        self._add(texts, 0)
        lines = {node: user_line(texts[processes[node]]) for node in nodes}
        return {node: line for node, line in lines.items() if line}

    def crash_line(self, process: int) -> str:
        """Return the last line of a process that has crashed, as `ask` does; empty if it left none."""
        self._hear(0)
        return user_line(self._crashes.pop(process, b""))

    def _add(self, texts: "dict[int, bytes]", seconds: float) -> bool:
        """Read what has come. False: nothing."""
        heard = self._hear(seconds)
        for process in heard.keys() & texts.keys():
            texts[process] += heard[process]
        return bool(heard)

    def _hear(self, seconds: float) -> "dict[int, bytes]":
        """Return all data, after at most that many seconds of silence: process -> text."""
        found: dict[int, bytes] = {}
        self._poll.poll(seconds * 1000)
        while True:
            try:
                text, extra, _flags, _address = self._read.recvmsg(65536, _socket.CMSG_SPACE(_CREDENTIALS))
            except BlockingIOError:
                return found
            if not text:  # all nodes are gone
                return found
            process = int.from_bytes(extra[0][2][:4], sys.byteorder) if extra else 0
            if process in self._crashes or text.startswith(_CRASH):
                self._crashes[process] = self._crashes.get(process, b"") + text
            else:
                found[process] = found.get(process, b"") + text


def _is_answering(process: int) -> bool:
    """Whether the handler runs, during which the kernel blocks the handler's own signal."""
    try:
        with open(f"/proc/{process}/status", "rb") as file:
            kept = file.read().partition(b"\nSigBlk:")[2].split()[:1]
    except OSError:
        return False
    return bool(kept) and bool(int(kept[0], 16) >> (WHERE_SIGNAL - 1) & 1)


def user_line(dump: bytes) -> str:
    """Return the innermost line of a faulthandler dump that belongs to the user's code, else the innermost one.

    For a node in `comm.work` the call precedes it, as calls precede the lines of nodes that wait.
    """
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
    library = os.path.dirname(os.__file__) + os.sep
    declared_work = os.path.join(package, "_core", "work_sleep.py")
    innermost = call = ""
    for path, number, function in _LINE.findall(dump.decode("utf-8", "replace")):
        found = f"{os.path.basename(path)}:{number}" + (f" in {function}" if function[0] != "<" else "")
        if not path.startswith((package, library, "<")):
            return call + found
        innermost = innermost or found
        call = f"{WORK}  " if path == declared_work else call
    return innermost


def describe(states: "dict[int, str]", names: Names = ALONE) -> str:
    """Return one line for each state, with the nodes in it. Two blanks in a state: a column ends."""
    by_state: dict[str, list[int]] = {}
    for node, state in sorted(states.items()):
        by_state.setdefault(state, []).append(node)
    rows = [(names.nodes(nodes), *state.split("  ")) for state, nodes in by_state.items()]
    return aligned(rows, left=None)
