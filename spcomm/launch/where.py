# SPDX-License-Identifier: MIT
"""Asks running nodes at which line they are, as far as that can be known.

A forked Python node has a handler (`faulthandler`, in C: it answers from within a wait or a computation, too)
that writes its stack into a pipe which all nodes share. Nodes are asked one after the other, so that answers
do not mix; one that comes too late is thrown away before the next node is asked.
"""

import os
import select
import time
from collections.abc import Callable

from spcomm.launch.groups import ALONE, Names
from spcomm.launch.process import WHERE_SIGNAL

_PATIENCE = 0.4  # seconds for one answer: nodes may have to wait for a core of a busy machine
_TOTAL = 1.0  # and for all


def ask(poke: "Callable[[int, int], None]", fd: int, nodes: "list[int]") -> "dict[int, str]":
    """`{node: "ring.py:12 in step"}` for those that answered in time. `poke(node, signal)` asks one."""
    answers: dict[int, str] = {}
    end = time.monotonic() + _TOTAL
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    for node in nodes:
        if time.monotonic() > end:
            break
        while poll.poll(0) and os.read(fd, 65536):
            pass
        poke(node, WHERE_SIGNAL)
        text = b""
        while poll.poll((_PATIENCE if not text else 0.005) * 1000):
            piece = os.read(fd, 65536)
            if not piece:
                break
            text += piece
        line = user_line(text.decode("utf-8", "replace"))
        if line:
            answers[node] = line
    return answers


def user_line(dump: str) -> str:
    """The innermost line of a faulthandler dump that belongs to the user's code, else the innermost one."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    library = os.path.dirname(os.__file__) + os.sep
    first = ""
    for line in dump.splitlines():
        parts = line.strip().rsplit(", line ", 1)
        if len(parts) != 2 or not parts[0].startswith('File "'):
            continue
        path = parts[0][6:].rstrip('"')
        found = f"{os.path.basename(path)}:{parts[1].partition(' in <')[0]}"
        if not path.startswith((package, library, "<")):
            return found
        first = first or found
    return first


def describe(states: "dict[int, str]", names: Names = ALONE) -> str:
    """One line for each state, with the nodes that are in it. Two blanks in a state: a column ends."""
    by_state: dict[str, list[int]] = {}
    for node, state in sorted(states.items()):
        by_state.setdefault(state, []).append(node)
    from spcomm.diagnose.words import table

    return table([(names.nodes(nodes), *state.split("  ")) for state, nodes in by_state.items()])
