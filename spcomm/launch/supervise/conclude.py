# SPDX-License-Identifier: MIT
"""`spcomm conclude`: the last report of a run without a launcher. Its supervisor executes it; users do not type it.

That supervisor is C (csrc/fork): it finds the first failure, ends the nodes, and writes a record of frames, whose kinds
csrc/fork/spc_failures.h lists. The words are those of `spcomm run`.
"""

import _signal
import os
import select
import sys

from spcomm.launch.base import report
from spcomm.launch.supervise.failures import Failures, told_to_end
from spcomm.text import ranks_text

BEGUN, ENDED, VANISHED, STOPPED, FIRST, SIGNAL, LATE, ORPHANED, SAID = (b"%c" % kind for kind in b"BWVSFNAOR")
_REFUSED = 3  # as in csrc/fork/spc_fork_supervisor.c: an uncaught exception ends this process with 1
_WRITE_MS = 10_000  # for a reader of stderr that is slow


class Ending:
    """The end of a run, as recorded by the supervisor of its nodes with these ranks."""

    def __init__(self, record: bytes, here: "list[int]") -> None:
        self._here = here
        self._ended: dict[int, int] = {}  # node → wait status; SIGTERM's where it is unknown
        self._interrupted: dict[int, str] = {}  # node → place
        self._late: list[int] = []
        self._signal = 0
        self._why = ""  # apart from a failure
        self._is_said = False  # why, by the supervisor
        for rank, kind, payload in report.frames(record)[0]:
            self._note(rank, kind, payload)

    def _note(self, rank: int, kind: bytes, payload: bytes) -> None:
        detail = payload.decode("utf-8", "replace")
        if kind == BEGUN:
            self._size, self._failures = rank, Failures(oom_kills=int(detail))
        elif kind == report.TEXT:
            self._failures.text(rank, payload)
        elif kind == ENDED:
            self._ended[rank] = int(detail)
            if self._ended[rank] or self._failures.known(rank):
                self._failures.ended(rank, self._ended[rank])
        elif kind in (VANISHED, STOPPED):
            self._ended[rank] = _signal.SIGTERM
            if kind == VANISHED:
                self._failures.vanished(rank)
        elif kind == FIRST:
            self._failures.close(int(detail))
        elif kind == SIGNAL:
            self._signal, self._why = int(detail), told_to_end(int(detail))
        elif kind == LATE:
            self._late.append(rank)
            have = "have" if len(self._late) > 1 else "has"
            self._why = (
                f"{ranks_text(self._late)} {have} not called startup() within 30 s; every process that {detail} "
                "starts has to (exit code 125)"
            )
        elif kind == ORPHANED:
            self._why = f"{detail} has ended without its processes; they were stopped (exit code 125)"
        elif kind == SAID:
            self._is_said = True
        else:
            if kind == report.INTERRUPTED and detail:
                self._interrupted[rank] = detail
            self._failures.reported(rank, kind, detail)

    @property
    def is_well(self) -> bool:
        """Whether nothing has ended the run."""
        return not self.reason() and not self._is_said

    def reason(self, notes: str = "") -> str:
        """Return why the run has ended: a sentence; empty if it went well."""
        if self._why or self._failures.first is None:
            return self._why
        return self._failures.outcome(notes, self._ended, self._size)

    def cause(self) -> str:
        """Return the same for boxes elsewhere, without the consequences here."""
        return self._why or (self._failures.first.sentence() if self._failures.first is not None else "")

    def text(self, labels: bool) -> bytes:
        """Return the report."""
        is_interrupted, first = self._signal == _signal.SIGINT, self._failures.first
        if is_interrupted and first is not None and self._failures.is_interrupt(first.index):
            self._failures.first = None  # Ctrl-C explains it
        shown, notes = self._failures.tracebacks(
            lambda rank, _target: b"[%d] " % rank if labels else b"", is_interrupted
        )
        if self._is_said:
            return shown
        stopped = "; the nodes were stopped" if self._signal else ""
        places = self._places() if is_interrupted else ""
        return shown + f"{places}spcomm: {self.reason(notes)}{stopped}\n".encode("utf-8", "backslashreplace")

    def _places(self) -> str:
        if not self._interrupted:
            return ""
        from spcomm.launch.local import stack_probe

        places = {rank: self._interrupted.get(rank) or self._place(rank) for rank in range(self._size)}
        return f"spcomm: where the nodes were:\n{stack_probe.describe(places)}"

    def _place(self, rank: int) -> str:
        if rank not in self._here:
            return "in another box"
        return "finished" if self._ended.get(rank) == 0 else "no answer"


def main(words: "list[str]") -> int:
    """Print the report. Return 3 if the run went well, and warnings are errors.

    Parameters
    ----------
    words : list of str
        The descriptor of the segment, and the ranks of the nodes here, as in ``0,1,2``.
    """
    record = sys.stdin.buffer.read() if len(words) == 2 and not os.isatty(0) else b""
    if not record:
        sys.stderr.write("spcomm conclude: is started at the end of a run that has no launcher\n")
        return 125
    here = [int(rank) for rank in words[1].split(",")]
    ending = Ending(record, here)
    if not ending.is_well:
        _write(ending.text(os.isatty(2)))
        return 0
    from spcomm.diagnose import unmatched

    text, is_refused = unmatched.of_box(int(words[0]), here)
    _write(text.encode("utf-8", "backslashreplace"))
    return _REFUSED if is_refused else 0


def _write(text: bytes) -> None:
    """Write to stderr, also where a node has made it non-blocking. Nobody may read it: the exit code counts."""
    room = select.poll()
    room.register(2, select.POLLOUT)
    while text:
        try:
            text = text[os.write(2, text) :]
        except BlockingIOError:
            if not room.poll(_WRITE_MS):
                return
        except OSError:
            return
