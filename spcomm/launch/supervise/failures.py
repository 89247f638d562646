# SPDX-License-Identifier: MIT
"""The first failure of a run, and the sentence about it.

The first is the node whose failure *reached the launcher* first: an exception is reported when it is raised, any other
failure when the node has ended. A `NodeLostError` is a consequence as long as there is another failure.
Nothing that happens after the launcher has signalled nodes to end counts as a failure. Nodes are known by index.
"""

import _signal
from collections.abc import Callable, Mapping

from spcomm._core import segments
from spcomm.launch.base import report
from spcomm.launch.base.process import signal_name
from spcomm.launch.cmdline.groups import ALONE, Names

_KEPT = 1 << 20  # bytes of traceback kept of one node


class Failure:
    """The failure of one node, as far as it is known."""

    def __init__(self, index: int, name: str) -> None:
        self.index = index
        self.name = name
        self.kind = b""  # of its report, if it sent one
        self.detail = ""
        self.status: int | None = None  # as of os.waitpid
        self.last_line = ""  # of a node that crashed
        self.stopped = False  # ended by the launcher
        self.out_of_memory = False  # killed by the kernel, as its control group counts
        self.is_vanished = False  # its process is gone, and its supervisor was not the parent

    @property
    def code(self) -> int:
        """The exit code of the run, if this failure was first."""
        if self.status is not None and not self.stopped:
            code = _code(self.status)
            if code:
                return code
        return (
            int(self.detail) if self.kind == report.EXITING else 130 if self.kind == report.INTERRUPTED else 1
        )

    @property
    def is_interrupt(self) -> bool:
        """Whether it ended because of SIGINT, which is a way to end a whole run."""
        return self.code == 128 + _signal.SIGINT

    def sentence(self) -> str:
        """Failure of a node; the code is the launcher's exit code."""
        if (
            self.status is not None
            and not self.stopped
            and self.status & 0x7F
            and self.kind != report.INTERRUPTED
        ):
            number = self.status & 0x7F
            where = f", last at {self.last_line}" if self.last_line else ""
            killer = "the kernel: out of memory" if self.out_of_memory else signal_name(number)
            return f"{self.name} was killed by {killer} (exit code {self.code}){where}"
        if self.kind in (report.RAISED, report.LOST, report.CUT):
            return f"{self.name} ended with an uncaught {self.detail} (exit code {self.code})"
        if self.kind == report.INTERRUPTED:
            return f"{self.name} ended with an uncaught KeyboardInterrupt (exit code {self.code})"
        return f"{self.name} died" if self.is_vanished else f"{self.name} ended with exit code {self.code}"


class Failures:
    """All failures of a run. `first` is None as long as only victims of a lost node have failed."""

    def __init__(self, names: Names = ALONE, oom_kills: "int | None" = None) -> None:
        self._names = names
        self._known: dict[int, Failure] = {}
        self.first: Failure | None = None
        self.first_lost: Failure | None = None
        self.closed = False  # nodes have been signalled to end: later failures do not count
        self._texts: dict[int, bytearray] = {}
        self._oom_kills = segments.oom_kills() if oom_kills is None else oom_kills  # when the run began

    def text(self, index: int, piece: bytes) -> None:
        """Add a piece of a node's traceback."""
        text = self._texts.setdefault(index, bytearray())
        if len(text) < _KEPT:
            text += piece

    def reported(self, index: int, kind: bytes, detail: str) -> None:
        """Record the cause that a node reports for its end."""
        failure = self._failure(index)
        failure.kind, failure.detail = kind, detail
        self._count(failure)

    def crashed(self, index: int, line: str) -> None:
        """Record that a signal killed a node at this line; its end is not known yet."""
        self._failure(index).last_line = line

    def ended(self, index: int, status: int) -> None:
        """Record the end of a node: a wait status that is not 0, or 0 after it had reported otherwise."""
        failure = self._failure(index)
        failure.status = status
        failure.out_of_memory = self.is_out_of_memory(status)
        failure.stopped = self.closed and status & 0x7F in (2, 9, 15) and self.first is not None
        self._count(failure)

    def vanished(self, index: int) -> None:
        """Record that the process of a node is gone, and that nobody knows how it has ended."""
        self._failure(index).is_vanished = True

    def is_out_of_memory(self, status: int) -> bool:
        """Whether the kernel has killed a process with this wait status; its control group counts such kills."""
        return status & 0x7F == _signal.SIGKILL and self._oom_kills < segments.oom_kills()

    def known(self, index: int) -> bool:
        return index in self._known

    def is_interrupt(self, index: int) -> bool:
        """Whether this node has ended because of SIGINT."""
        failure = self._known.get(index)
        return failure is not None and (failure.is_interrupt or failure.kind == report.INTERRUPTED)

    def spoke(self, index: int) -> bool:
        """Whether the node failed by itself, by its report or because it was first."""
        return (self.first is not None and self.first.index == index) or bool(
            index in self._known and self._known[index].kind
        )

    def settle(self) -> None:
        """Blame the first victim (it waited for a finished node), when no other failure has come."""
        if self.first is None:
            self.first = self.first_lost

    def close(self, first: int) -> None:
        """Count no later failure. Another process has found the first one; -1: there is none."""
        self.closed = True
        self.first = self._failure(first) if first >= 0 else None

    def outcome(self, notes: str, ended: "Mapping[int, int]", size: int) -> str:
        """Return the sentence about the first failure, and what became of others. `ended`: node → wait status."""
        parts = [self.first.sentence()] + ([notes] if notes else [])
        if self.first.is_interrupt and size > 1:
            parts.append(f"the other {'nodes were' if size > 2 else 'node was'} interrupted, too")
            return "; ".join(parts)
        stopped = [
            node
            for node in sorted(ended)
            if not self.spoke(node) and ended[node] & 0x7F in (_signal.SIGTERM, _signal.SIGKILL)
        ]
        if stopped and len(stopped) == size - 1:
            parts.append("the other nodes were stopped" if size > 2 else "the other node was stopped")
        elif stopped:
            parts.append(f"{self._names.nodes(stopped)} {'were' if len(stopped) > 1 else 'was'} stopped")
        return "; ".join(parts)

    def tracebacks(self, label: "Callable[[int, int], bytes]", interrupted: bool) -> "tuple[bytes, str]":
        """Return all tracebacks worth showing, the first failure's last, and a sentence on those that are not shown.

        Of a failure at the same line as the first one only the message is shown, if it differs. These are not shown at
        all: a `NodeLostError` and the like that followed from the first failure, a `MismatchError` after another (all
        nodes get it, and each one names all), a KeyboardInterrupt that followed from Ctrl-C, and duplicates of one that
        is shown. `label(index, 2)` returns the label of a line.
        """
        first = self.first.index if self.first is not None else None
        mine = bytes(self._texts.get(first, b"")) if first is not None else b""
        shown, beside, same, too, lost = [], [], [], [], []
        others: dict[bytes, list[int]] = {}
        silent = [
            index for index in self._known if index not in self._texts
        ]  # stopped before their tracebacks came
        for index, text in [*self._texts.items(), *((index, b"") for index in silent)]:
            kind = self._failure(index).kind
            if index == first or (interrupted and kind == report.INTERRUPTED):
                continue
            if kind == report.LOST:
                lost.append(index)
            elif mine and bytes(text) == mine:
                same.append(index)
            elif self.first is not None and self._mismatched(self.first.index) and self._mismatched(index):
                too.append(index)
            elif text:
                others.setdefault(bytes(text), []).append(index)
        stack = _stack(mine)
        for text, indices in sorted(others.items(), key=lambda item: item[1]):
            if stack and _stack(text) == stack:
                message = text[len(stack) :]
                beside.append(f"{self._names.nodes(indices)}, at the same line: ".encode() + message)
            else:
                shown.append(self._headed(indices[:1], text, label))
        shown += beside
        if mine and first is not None:
            shown.append(self._headed([first], mine, label) if shown else _labelled(mine, label(first, 2)))
        notes = [f"{self._names.nodes(same)} failed in the same way"] if same else []
        notes += [
            f"{self._names.nodes(alike[1:])} failed as {self._names.nodes(alike[:1])} did"
            for alike in others.values()
            if len(alike) > 1
        ]
        notes += [f"{self._names.nodes(too)} raised MismatchError, too"] if too else []
        victims: dict[str, list[int]] = {}
        for index in lost if first is not None else ():
            victims.setdefault(self._known[index].detail, []).append(index)
        notes += [
            f"{self._names.nodes(nodes)} raised {name} because of it" for name, nodes in victims.items()
        ]
        return b"".join(shown), "; ".join(notes)

    def _headed(self, indices: "list[int]", text: bytes, label: "Callable[[int, int], bytes]") -> bytes:
        """Format one of several tracebacks: where lines have no labels, a heading names the node."""
        labelled = _labelled(text, label(indices[0], 2))
        return labelled if labelled != text else f"{self._names.nodes(indices)}:\n".encode() + text

    def _mismatched(self, index: int) -> bool:
        failure = self._known.get(index)
        return failure is not None and failure.kind == report.RAISED and failure.detail == "MismatchError"

    def _failure(self, index: int) -> Failure:
        return self._known.setdefault(index, Failure(index, self._names.nodes([index])))

    def _count(self, failure: Failure) -> None:
        if self.closed or self.first is not None:
            return
        if failure.kind in (report.LOST, report.CUT):
            self.first_lost = self.first_lost or failure
        elif failure.kind or failure.status:
            self.first = failure


def told_to_end(number: int) -> str:
    """Return the sentence about a signal that ends the run."""
    if number == _signal.SIGINT:
        return "interrupted by Ctrl-C (exit code 130)"
    return f"told to end by {signal_name(number)} (exit code {128 + number})"


def _labelled(text: bytes, label: bytes) -> bytes:
    if text and not text.endswith(b"\n"):
        text += b"\n"
    if not label or not text:
        return text
    return label + text[:-1].replace(b"\n", b"\n" + label) + b"\n"


def _stack(text: bytes) -> bytes:
    """Return a traceback without the message at its end; empty if it has several parts, or none."""
    lines = text.splitlines(keepends=True)
    if text.count(b"Traceback (most recent call last):\n") != 1 or not lines[0].startswith(b"Traceback"):
        return b""
    frames = next((at for at, line in enumerate(lines) if at and not line.startswith(b" ")), 0)
    return b"".join(lines[:frames])


def _code(status: int) -> int:
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8
