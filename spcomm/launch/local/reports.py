# SPDX-License-Identifier: MIT
"""Ends of nodes: their reports, and the marks in shared memory by which the other nodes learn of them.

A node writes why it fails into the pipe of its group (`base.report`). The processes that supervise nodes read these
pipes, and mark nodes that fail or have ended, so that others do not wait for them. Nodes are known by index.
"""

import os

from spcomm.launch.base import process, report
from spcomm.launch.local import stack_probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from spcomm.launch.base.loop import Loop
    from spcomm.launch.local.run_processes import RunProcesses


class Reports:
    """Reports of the nodes that have this machine's memory."""

    def __init__(
        self,
        run_processes: "RunProcesses",
        loop: "Loop",
        heard: "Callable[[int, bytes, bytes], None]",
        cpus: "list[tuple[int, ...]] | None" = None,
        stats: bool = False,
    ) -> None:
        """Describe the run to the fork servers, as `RunProcesses.run` does. `heard` gets a report: node, kind, text."""
        self._run_processes, self._loop, self._heard = run_processes, loop, heard
        self.replies = stack_probe.ProbeReplies()
        self._readers = [report.Reader() for _group in run_processes.groups]
        self._failed: set[int] = set()  # nodes that have reported a failure
        self._interrupted: set[int] = set()  # of these, the ones that SIGINT ends
        self._unpublished: list[tuple[int, int]] = []  # nodes that SIGINT has ended, and their wait statuses
        pipes = [reader.write for reader in self._readers]
        run_processes.run(pipes, self.replies.fileno(), cpus, stats)
        self.replies.close_theirs()
        for reader in self._readers:
            os.close(reader.write)
            loop.add(reader.fd, self.read)

    def close(self) -> None:
        """Read nothing more."""
        for reader in self._readers:
            self._loop.remove(reader.fd)
            reader.close()
        self.replies.close()

    def read(self) -> None:
        """Read what has come."""
        for group, reader in zip(self._run_processes.groups, self._readers, strict=True):
            if reader.ended:
                continue
            for rank, kind, payload in reader.read():
                if rank < group.size:
                    self._reported(group.index(rank), kind, payload)
            if reader.ended:
                self._loop.remove(reader.fd)

    def _reported(self, index: int, kind: bytes, payload: bytes) -> None:
        segment, rank = self._run_processes.memory(index)
        has_memory = segment is not None  # otherwise the node is in another box, or between calls
        if has_memory and kind not in (report.TEXT, report.CRASHED):
            self._failed.add(index)
            detail = payload.decode("utf-8", "replace")
            if report.interrupts(kind, detail):
                self._interrupted.add(index)  # the others get the signal first, and may save what they have
            else:
                segment.mark_failing(rank, int(detail) if kind == report.EXITING else 1)
        self._heard(index, kind, payload)

    def read_last(self, index: int, status: int) -> None:
        """Read the reports of a node that has ended, which come before its end, and the line at which it crashed."""
        self.read()
        started = self._run_processes.started.get(index, 0)
        line = self.replies.crash_line(started) if status & 0x7F else ""
        if line:
            self._heard(index, report.CRASHED, line.encode())

    def ended(self, index: int, status: int) -> None:
        """Tell the other nodes of the end of one."""
        if status == 0 and index not in self._failed:
            segment, rank = self._run_processes.memory(index)
            segment.mark_finished(rank)
        elif index in self._interrupted or report.is_interrupt(status):
            self._unpublished.append((index, status))
            self.publish()
        else:
            self.died(index, status)

    def publish(self) -> None:
        """Tell the nodes of those that SIGINT has ended, once all have the signal: they save, and miss nobody."""
        if self._run_processes.signalled:
            for index, status in self._unpublished:
                self.died(index, status)
            self._unpublished.clear()

    def died(self, index: int, status: int) -> None:
        """Tell the other nodes now that one has failed."""
        segment, rank = self._run_processes.memory(index)
        segment.mark_died(rank, process.exit_reason(status))
