# SPDX-License-Identifier: MIT
"""The processes of a cluster: a fork server, as `spcomm run` has one, and the nodes that it forks.

The caller's process is their launcher. When it ends, however that happens, the fork server ends the nodes, and the
kernel ends leftover processes if the fork server has gone. New nodes come from the same fork server, in milliseconds.
"""

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from spcomm import resource_limits
from spcomm._core import segments
from spcomm._core.errors import ConfigError, SpcommError
from spcomm.launch.base import nothing, report
from spcomm.launch.base.loop import Loop
from spcomm.launch.base.process import WHERE_SIGNAL, open_standard_streams, signal_name
from spcomm.launch.base.record import replace
from spcomm.launch.base.usage import UsageError
from spcomm.launch.base.wire import encoded
from spcomm.launch.cmdline import options, plan
from spcomm.launch.cmdline.boxes import places
from spcomm.launch.cmdline.groups import Group, gather
from spcomm.launch.cmdline.memory import sizes
from spcomm.launch.local.fork_client import ForkClient
from spcomm.launch.local.reports import Reports
from spcomm.launch.local.run_processes import RunProcesses
from spcomm.launch.remote.transport_fork import GONE, TransportForkClient
from spcomm.notebook.channel import Channel, Sockets
from spcomm.notebook.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from spcomm.launch.local.node_contract import Starter

START = ""  # options of `spcomm run` on how nodes start: there are two ways, and a system may have only one
_MAIN = "import sys; sys.path[:] = {!r}; import spcomm.notebook.__main__"  # of a node that starts by itself
_ENDING_S = 3.0  # seconds for the nodes to end by themselves


class Nodes:
    """Nodes 0 to size - 1. They belong to the process that has made this object: a fork of it leaves them alone."""

    is_plain = False  # whether their machines are not trusted: see `pickling.unpacked`

    def __init__(self, size: int, boxes: int = 1) -> None:
        open_standard_streams()
        self.size = size
        self.boxes = boxes
        self.loop = Loop()
        self.screen = Screen(self.loop)
        self.ended: dict[int, int] = {}  # node → wait status
        self.exited: Callable[[int, int], None] | None = None  # called for each end during a call
        self.channels: list[Channel] = []
        self.since = time.time()
        self.group = Group(0)
        self.reports: Reports | None = None
        self._owner = os.getpid()
        self._fork_clients: list[ForkClient] = []
        # Between boxes, from the first call that needs it.
        self._transports: TransportForkClient | None = None
        self._error = ""
        self._crash_lines: dict[int, str] = {}  # where nodes were that a signal has ended
        self._texts: list[bytes] = []  # of tracebacks
        self._is_fork_server_lost = False  # it was killed, and the nodes with it
        self._guarded(self._begin)

    @property
    def alive(self) -> bool:
        """Whether all of them run, as far as reports show."""
        return self._has_begun and not self.run_processes.gone and not self.ended and self.mine

    @property
    def _has_begun(self) -> bool:
        """Whether there is something to end."""
        return bool(self._fork_clients)

    @property
    def mine(self) -> bool:
        """Whether this process owns the nodes; False in a fork of the owner."""
        return self._owner == os.getpid()

    def _guarded(self, begin: "Callable[[], None]") -> None:
        """Start nodes; any failure to start them, a Ctrl-C too, leaves none behind."""
        try:
            begin()
        except BaseException as error:
            self.kill()
            if isinstance(error, OSError) and error.errno in resource_limits.SHORTAGES:
                raise SpcommError(_too_few(self.size, error.errno)) from None
            raise

    # Start and end

    def _begin(self) -> None:
        """Start the fork server, if there is none, and the nodes."""
        if not self._fork_clients:
            self._fork_clients = [ForkClient(self._plan(), WHERE_SIGNAL, None)]
            self._fork_clients[0].stays = True
        (fork_client,) = self._fork_clients
        boxes = places("block", self.boxes, self.size)
        plans, (self.group,) = gather([replace(fork_client.plan, nodes=self.size, boxes=boxes)])
        fork_client.place(plans)
        self.ended, self._error, self._signals = {}, "", 0
        self._crash_lines, self._is_fork_server_lost = {}, False
        self.run_processes = RunProcesses([fork_client], [self.group])
        self.renew(0)
        self._start_nodes()
        self.drop()
        self.send(("begin", _search_path()))

    def _start_nodes(self) -> None:
        """Start as many as there should be. Raises `SpcommError` if one of them cannot start."""
        self.channels = [Channel(self.is_plain) for _node in range(self.size)]
        try:
            self.run_processes.listen(self.loop, self)
            self.reports = Reports(self.run_processes, self.loop, self._reported)
            sockets = Sockets(self.channels)
            while not self._failure() and len(self.run_processes.started) < self.size:
                self.run_processes.start(self.screen, sockets)
                self.loop.turn()
        except OSError as error:
            self._error = _too_few(self.size, error.errno or 0)
        if self._failure():
            raise SpcommError(self._failure())
        self.since = time.time()

    def _failure(self) -> str:
        """The reason why not all nodes can start, or nothing."""
        gone = "the process that starts the nodes has ended; try again" if self.run_processes.gone else ""
        return self._error or gone

    def parts(self, about: dict, work: tuple) -> "list[tuple[int, bytes]]":
        """The message that begins a call, for the nodes of each box, and the descriptor that goes with it."""
        return [
            (segment.fd, encoded(("call", {**about, "device": segment.device, "inode": segment.inode}, work)))
            for segment in self.group.segments
        ]

    def _plan(self) -> plan.Plan:
        words = ["-n", str(self.size), *START.split(), "-m", "spcomm.notebook"]
        try:
            self.options = options.parse(words)
            (found,) = plan.resolve_all(self.options)
        except UsageError as error:
            raise ConfigError(str(error)) from None
        environment = {**found.environment, "MPLBACKEND": "module://spcomm.notebook.figures"}
        found = replace(found, takes_interrupt=True, environment=environment)
        if found.kind == "executable":  # NumPy may be in a folder that only the caller's sys.path names
            return replace(found, arguments=[*found.arguments[:-2], "-c", _MAIN.format(_search_path())])
        return replace(found, preload=["numpy", "spcomm.notebook.node_main"], search_path=_search_path())

    def renew(self, trace_events: int) -> None:
        """Give the nodes shared memory without a past, which the next call is to have."""
        self.drop()
        mask = segments.disable_mask()
        transports = self.boxes + 1 if self.boxes > 1 else 0
        busy = self.size + transports > segments.cores()
        more: dict = {}
        if self.boxes > 1:
            more = {**sizes(segments, self.options, [self.group], mask), "begun_ns": time.monotonic_ns()}
            more.update(boxes=self.boxes, places=self.group.places)
        for box in range(self.boxes):
            if self.boxes > 1:
                more["box"] = box
            self.group.segments.append(
                segments.Segment(
                    self.size, oversubscribed=busy, disable=mask, trace_events=trace_events, **more
                )
            )

    def begin_transport(self, hear: "Callable[[tuple | None], None]") -> None:
        """Have messages between boxes carried, for one call. `hear` gets the messages of the transport processes."""
        if self.boxes == 1:
            return
        for _attempt in range(2):  # their fork server may have ended since the last call
            transports = self._transports = self._transports or TransportForkClient()
            why = transports.begin(self.group, self.options.link_timeout)
            if why != GONE:
                break
            self._forget_transports()
        if why:
            raise SpcommError(why)
        self.loop.add(transports.fileno(), lambda: hear(transports.receive()))

    def end_transport(self) -> None:
        """The call is over."""
        if self._transports is not None:
            self.loop.remove(self._transports.fileno())
            if not self._transports.end():
                self._forget_transports()

    def _forget_transports(self) -> None:
        transports, self._transports = self._transports, None
        if transports is not None:
            self.loop.remove(transports.fileno())
            transports.kill()

    def drop(self) -> None:
        """Give up the shared memory of a call."""
        for segment in self.group.segments:
            segment.close()
        self.group.segments.clear()

    def restart(self, size: "int | None", boxes: int = 1) -> None:
        """End all nodes at once, and start so many new ones, in so many boxes, by the same fork server if it lives."""
        self.run_processes.kill()
        while not self.run_processes.gone and len(self.ended) < len(self.run_processes.started):
            self.loop.turn()
        self._tidy()
        if self.run_processes.gone:
            self._forget_fork_server()
        self.size, self.boxes = size or self.size, boxes
        self._guarded(self._begin)

    def hang_up(self) -> None:
        """Tell the nodes to end, as a program does."""
        self._close_channels()
        if self._has_begun and not self.loop.waits("end"):
            for fork_client in self._fork_clients:
                fork_client.end()
            self.loop.at("end", _ENDING_S, self.run_processes.kill)

    def close(self) -> None:
        """Let the nodes end, or else end them, and the fork server."""
        if not self._has_begun or not self.mine:
            return
        try:
            self.hang_up()
            while not self.run_processes.gone:
                self.loop.turn()
            self.screen.close()
        finally:
            self.kill()

    def abandon(self) -> None:
        """End everything at once, from a thread that is not the one of the loop."""
        if not self.mine:
            return
        for fork_client in self._fork_clients:
            fork_client.kill()  # and the kernel, or the server of the room, ends the nodes
        if self._transports is not None:
            self._transports.abandon()

    def kill(self) -> None:
        """End everything at once, without waiting for the results."""
        if not self._has_begun or not self.mine:
            return
        self.loop.forget("end")
        self.screen.give_up()
        self._leave()
        self._tidy()
        self.loop.close()

    def _leave(self) -> None:
        """End the processes that have started the nodes, and the nodes with them."""
        self._forget_transports()
        self._forget_fork_server()

    def _forget_fork_server(self) -> None:
        for fork_client in self._fork_clients:
            self.loop.remove(fork_client.fileno())
            fork_client.go_on()
            fork_client.close()
            fork_client.wait()
        self._fork_clients = []

    def _tidy(self) -> None:
        """The nodes have ended."""
        self.screen.close()
        self._close_channels()
        self.channels = []
        self.drop()
        if self.reports is not None:
            self.reports.close()
            self.reports = None

    def _close_channels(self) -> None:
        for channel in self.channels:
            if channel.fileno() >= 0:
                self.loop.remove(channel.fileno())
                channel.close()

    # Receiving

    def catch_up(self) -> None:
        """Receive the events since the last call."""
        self.loop.at("now", 0.0, nothing)
        while self.loop.waits("now"):
            self.loop.turn()
        for node, channel in enumerate(self.channels):
            channel.read()  # its end comes before the news of the node's end
            if channel.ended:
                self._await_end(node)

    def _await_end(self, node: int) -> None:
        """A node that has closed its socket is about to end, or closed a foreign descriptor, and is killed."""
        self.loop.at("end", _ENDING_S, self.run_processes.kill)
        while node not in self.ended:
            self.loop.turn()
        self.loop.forget("end")

    # Messages of the fork server

    def on_gone(self, fork_client: "Starter", _is_lost: bool) -> None:
        self._is_fork_server_lost = self._is_fork_server_lost or not self.loop.waits("end")
        for node in set(self.run_processes.started) - set(self.ended):
            self.on_exited(fork_client, node, signal.SIGKILL)

    def on_started(self, _fork_client: "Starter", nodes: "list[int]", _processes: "list[int]") -> None:
        self._signals -= not nodes

    def on_unstarted(self, _fork_client: "Starter", _nodes: "list[int]", number: int) -> None:
        self._error = _too_few(self.size, number)

    def on_missing(self, _fork_client: "Starter", name: str, text: str) -> None:
        self._error = f"the nodes cannot import {name}:\n{text}"

    def on_exited(self, _fork_client: "Starter", node: int, status: int, *_times: "Any") -> None:
        self.reports.read_last(node, status)  # type: ignore[union-attr]
        self.ended[node] = status
        if self.exited is not None:
            self.exited(node, status)

    def _reported(self, node: int, kind: bytes, payload: bytes) -> None:
        if kind == report.TEXT:
            self._texts.append(payload)
        elif kind == report.CRASHED:
            self._crash_lines[node] = f" at {payload.decode('utf-8', 'replace')}"

    def how(self, node: int, status: int) -> str:
        """The end of a node in words: the signal, the line, the box."""
        if self._is_fork_server_lost:
            return f"{how_ended(status)} together with the process that starts the nodes"
        box = f" in box {self.group.box(node)}" if self.boxes > 1 else ""
        return f"{how_ended(status)}{self._crash_lines.get(node, '')}{box}"

    def last_words(self) -> str:
        """The tracebacks of nodes that an error has ended: of spcomm, for a cell's do not end a node."""
        self.reports.read()  # type: ignore[union-attr]
        texts, self._texts = self._texts, []
        return b"".join(texts).decode("utf-8", "replace")

    # Sending

    def send(self, message: tuple, descriptor: int = -1) -> None:
        """Send the same to all nodes."""
        data = encoded(message)
        for channel in self.channels:
            channel.send(data, descriptor)

    def interrupt(self) -> None:
        """Interrupt the nodes as Ctrl-C at a terminal would. Nodes without work ignore it."""
        living = [fork_client for fork_client in self._fork_clients if not fork_client.gone]
        for fork_client in living:
            fork_client.go_on()
            fork_client.signal(signal.SIGINT)
            fork_client.start(range(0), [])  # none: the answer confirms that the signals are sent
        self._signals += len(living)

    @property
    def signals_under_way(self) -> bool:
        """Whether an interrupt may still be sent, which would hit the next call if this one were over."""
        return self._signals > 0 and not self.run_processes.gone


def how_ended(status: int) -> str:
    """The end of a process, by its wait status."""
    number = status & 0x7F
    return f"was killed ({signal_name(number)})" if number else f"ended with exit code {status >> 8}"


def _search_path() -> "list[str]":
    """Return `sys.path` of this process, in any folder."""
    return [os.path.abspath(entry) for entry in sys.path]


def _too_few(size: int, number: int) -> str:
    advice = resource_limits.advice(number)
    return f"not all of {size} nodes could be started ({os.strerror(number)}); try fewer, or {advice}"
