# SPDX-License-Identifier: MIT
"""One call of a cluster: hands the work to all nodes, and stays until each has given back its result.

The call *ends early* when there is a reason to: an exception on one node, a deadlock, a timeout, a Ctrl-C. Then the
nodes are interrupted, each by a KeyboardInterrupt, and a node that does not come back after that is killed. There is
one reason: later events change nothing, except a second Ctrl-C, which kills at once. A node that fails
is marked in the call's shared memory, so that nodes which wait for it are woken and raise `NodeLostError`, as in any
run. Nodes that have come back, with a result or an exception, are as good as new: the next call has other memory.
"""

from typing import TYPE_CHECKING

from spcomm._core.errors import ConnectionLostError, SpcommError
from spcomm.launch.base import report
from spcomm.launch.base.wire import encoded
from spcomm.launch.local.stack_probe import describe
from spcomm.launch.supervise.supervisor import FAILURE, Supervision
from spcomm.notebook.channel import Channel
from spcomm.notebook.nodes import Nodes
from spcomm.notebook.wakeup import Wakeup
from spcomm.text import ranks_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from spcomm._core.segments import Segment
    from spcomm.launch.supervise.failures import Failure
    from spcomm.notebook.live_view import LiveView

# For other nodes to come back, or to fail with a clearer error, before they are interrupted; and after that.
SETTLE_S = 0.5
GRACE_S = 3.0
_ARRIVALS_S = 10.0  # for messages that were sent to other boxes, when all nodes are back
# Reasons beside those of a `Supervision`: Ctrl-C; another thread; the code that shows output or figures has raised.
INTERRUPT, CLOSED, BROKEN = "interrupt", "closed", "broken"


class Call(Supervision):
    """Use it once: `run`, then read the results."""

    def __init__(
        self, nodes: Nodes, name: str, timeout: "float | None" = None, trace_events: int = 0
    ) -> None:
        super().__init__(nodes.run_processes, nodes.loop, nodes.options.stall, nodes.screen.say)
        self._nodes = nodes
        self._name = name
        self.timeout = timeout
        self._trace_events = trace_events
        self.results: dict[int, bytes | None] = {}
        self.errors: dict[int, bytes] = {}  # exceptions, as far as they can be pickled
        self.interrupted: list[int] = []
        self.killed: dict[int, str] = {}  # nodes that have ended in it, and how
        self.lines: dict[str, list[str]] = {}  # of files that only the caller has
        self.grouped = False  # the output is shown node by node at the end
        self.figure: Callable[[int, bytes], None] | None = None  # it gets the pictures
        self.watch: Callable[[str], None] | None = None  # it gets the nodes' activity, as HTML
        self._notes = ""  # of the failures, once there are `tracebacks`
        self._figures: dict[int, list[bytes]] = {}  # by node, not shown yet
        self._over: dict[int, int] = {}  # nodes that have come back, or ended; for the watchdog
        self._is_killing = ""  # nodes are being killed: why
        self._presses = 0  # of Ctrl-C
        self._has_arrived = False  # the messages to other boxes have arrived, or no more can
        self.broken: Exception | None = None  # the error that kept output or figures from being shown
        self._wakeup = Wakeup(nodes.loop, self._interrupted, self._closed)

    @property
    def reason(self) -> str:
        """Why it has ended early, or nothing."""
        return self._reason

    @property
    def first(self) -> "Failure | None":
        """The first failure of a node; after `tracebacks` even if all are consequences."""
        return self._failures.first

    @property
    def has_failed(self) -> bool:
        """Whether a node has failed, regardless of the others."""
        return self._failures.first is not None or self._failures.first_lost is not None

    @property
    def is_plain(self) -> bool:
        """Whether its results are plain values only."""
        return self._nodes.is_plain

    @property
    def damaged(self) -> bool:
        """Whether there must be new nodes before anything else can be done."""
        return bool(self.killed)

    # One call

    def run(self, *work: object, alone: bool = False) -> None:
        """Have all nodes do it, and return when all have come back or ended. A Ctrl-C interrupts them."""
        nodes = self._nodes
        nodes.renew(self._trace_events)
        about = {
            "name": self._name,
            "size": nodes.size,
            "traced": self._trace_events > 0,
            "alone": alone,
            "plain": nodes.is_plain,
        }
        parts = nodes.parts(about, work)
        nodes.screen.gather(self.grouped)
        nodes.exited = self._exited
        with self._wakeup:
            try:
                for node, status in nodes.ended.items():
                    self._exited(node, status)
                if not alone:
                    nodes.begin_transport(self._hear_transport)
                for node, channel in enumerate(nodes.channels):
                    descriptor, data = parts[nodes.group.box(node)]
                    self._listen(node, channel)
                    self.tell(node, data, descriptor)
                    self.begun(node)
                self._attend()
                if nodes.boxes > 1 and not alone:
                    self._await_arrivals()
                nodes.screen.settle()
                self._look_at_screen()
            finally:
                nodes.exited = None
                self._stop_listening()
                nodes.end_transport()

    def begun(self, node: int) -> None:
        """Its work has been handed to a node."""

    def _attend(self) -> None:
        nodes = self._nodes
        self._watchdog.start(nodes.reports.replies, self._over, nodes.is_plain and self._trace_events > 0)
        if self.timeout is not None:
            self._loop.at("timeout", self.timeout, self._timed_out)
        watch = self._begin_watch() if self.watch is not None else None
        while len(self._over) < nodes.size or nodes.signals_under_way:
            self._loop.turn()
            self._show_figures()
            self._look_at_screen()
        if watch is not None:
            watch.stop()

    def _begin_watch(self) -> "LiveView":
        from spcomm.notebook.live_view import LiveView

        watch = LiveView(self._run_processes, self._nodes.group, self._show_watch)
        watch.start(self._loop, self._over)
        return watch

    def _show_watch(self, html: str) -> None:
        if self.watch is None:
            return
        try:
            self.watch(html)
        except Exception as error:
            self.watch = None
            self._break(error)

    def close(self) -> None:
        """Kill the nodes, from another thread: there will be no others."""
        self._wakeup.ring()

    def _listen(self, node: int, channel: Channel) -> None:
        self._loop.add(channel.fileno(), lambda: self._hear(node, channel))

    def _stop_listening(self) -> None:
        self._watchdog.stop()
        for name in ("timeout", "settle", "again", "kill", "clocks", "watch"):
            self._loop.forget(name)
        for channel in self._nodes.channels:
            self._loop.remove(channel.fileno())

    def tell(self, node: int, data: bytes, descriptor: int = -1) -> None:
        """Send a node something, without waiting until it reads."""
        channel = self._nodes.channels[node]
        channel.send(data, descriptor)
        if channel.waits:
            self._loop.remove(channel.fileno())
            self._loop.add(channel.fileno(), lambda: self._send_rest(node, channel), write=True)

    def _send_rest(self, node: int, channel: Channel) -> None:
        channel.flush()
        if not channel.waits:
            self._loop.remove(channel.fileno())
            self._listen(node, channel)

    # Messages from nodes

    def _hear(self, node: int, channel: Channel) -> None:
        try:
            for message in channel.read():
                self.heard(node, *message)
        except (LookupError, TypeError, ValueError) as error:
            if not self._nodes.is_plain:
                raise
            channel.ended = True  # a member can send anything
            self._break(SpcommError(f"node {node} sent a malformed message ({error})"))
        if channel.ended:
            self._loop.remove(channel.fileno())
            if node not in self._over:  # it ends, or has closed a descriptor that is not its own
                why = "closed its connection to the caller, and was killed"
                self._loop.at("kill", GRACE_S, lambda: self._kill(why))

    def heard(self, node: int, verb: str, *rest: object) -> None:
        if verb == "done":
            self.results[node] = rest[0]  # type: ignore[assignment]
            self._over[node] = 0
        elif verb == "failed":
            self._failed(node, *rest)  # type: ignore[arg-type]
        elif verb == "figure":
            self._figures.setdefault(node, []).append(rest[0])  # type: ignore[arg-type]

    def _show_figures(self) -> None:
        """In the order of the nodes: those of a node are held back until all before it have come back."""
        for node in range(self._nodes.size):
            for png in self._figures.pop(node, ()):
                self._show_figure(node, png)
            if node not in self._over:
                return

    def _show_figure(self, node: int, png: bytes) -> None:
        if self.figure is None:
            return
        self._nodes.screen.settle_node(node)
        try:
            self.figure(node, png)
        except Exception as error:
            self.figure = None
            self._break(error)

    def _failed(self, node: int, kind: bytes, detail: str, text: bytes, error: "bytes | None") -> None:
        self._over[node] = 0
        self._segment(node).mark_failing(node, 1)
        self._nodes.channels[node].send(encoded(("over",)))
        if self._reason and kind == report.INTERRUPTED:
            self.interrupted.append(node)
            return
        self._failures.reported(node, kind, detail)
        self._failures.text(node, text)
        if error is not None:
            self.errors[node] = error
        self._settle()

    def _exited(self, node: int, status: int) -> None:
        """A node has ended: killed, or by os._exit. Nodes that wait for it are notified now."""
        if node in self._over:
            return  # it was back already: the next call gets new nodes
        self._over[node] = status
        how = self._nodes.how(node, status)
        if self._failures.is_out_of_memory(status):
            how = how.replace("(SIGKILL)", "by the kernel: out of memory", 1)
        self.killed[node] = self._is_killing or how
        self._nodes.reports.died(node, status)
        if not self._is_killing:
            self._failures.ended(node, status or 1 << 8)
        self._settle()

    def _segment(self, node: int) -> "Segment":
        return self._nodes.group.segment(node)

    # Between boxes

    def _hear_transport(self, message: "tuple | None") -> None:
        if message is None:
            self._disconnected("the process that starts the gateways has ended", -1)
        elif message[0] == "deadlock":
            self._watchdog.proven(self._nodes.group.number, *message[1:])
        elif message[0] == "lost":
            self._disconnected(message[1], message[2])
        elif message[0] == "over":
            self._has_arrived = True

    def _disconnected(self, sentence: str, culprit: int) -> None:
        if self._has_arrived:
            return
        self._has_arrived = True
        for segment in self._nodes.group.segments:
            segment.mark_disconnected(culprit)
        self._break(ConnectionLostError(f"{sentence}; the nodes were interrupted, and keep their variables"))

    def _await_arrivals(self) -> None:
        """All nodes are back: deliver their messages to other boxes, so that unmatched messages are known."""
        if self._reason or self.has_failed:
            return
        for node in range(self._nodes.size):
            self._segment(node).mark_finished(node)
        loop = self._loop
        loop.at("arrivals", _ARRIVALS_S, self._arrived_late)
        while not self._has_arrived:
            loop.turn()
        loop.forget("arrivals")

    def _arrived_late(self) -> None:
        self._has_arrived = True

    # Early ends

    def _settle(self) -> None:
        if not self._reason and not self._loop.waits("settle"):
            self._loop.at("settle", SETTLE_S, lambda: self._end(FAILURE))

    def _look_at_screen(self) -> None:
        error = self._nodes.screen.take_error()
        if error is not None:
            self._break(error)

    def _break(self, error: Exception) -> None:
        self.broken = self.broken or error
        self._end(BROKEN)

    def _interrupted(self) -> None:
        """A Ctrl-C: the first one asks the nodes to stop, if nothing else has, and the second one kills them."""
        self._presses += 1
        if self._presses == 1:
            if not self._reason:
                self._locate()
            self._end(INTERRUPT)
        else:
            self._kill()

    def _closed(self) -> None:
        self._end(CLOSED)
        self._reason = CLOSED
        self._kill("was killed when the Cluster was closed")

    def _stop_nodes(self, *_how: int) -> None:
        """Interrupt all nodes that are not back, once, and kill those that stay."""
        if len(self._over) < self._nodes.size:
            # An interrupt may come before the work has begun.
            self._loop.at("again", GRACE_S / 2, self._nodes.interrupt)
            self._loop.at("kill", GRACE_S, self._kill)
            self._nodes.interrupt()

    def _kill(self, why: str = "did not stop when interrupted, and was killed") -> None:
        self._is_killing = why
        self._run_processes.kill()

    # Messages about it

    def deadlock(self) -> str:
        """The report of a deadlock."""
        return self._report.removeprefix("spcomm: ")

    def table(self) -> str:
        """Places of the nodes, a line for each place."""
        return describe(self._states)

    def unmatched(self) -> str:
        """Warnings of messages never received, and of barriers never waited for."""
        return self._nodes.group.unmatched("", True)[0]  # a cell has no --strict that would show lines

    def tracebacks(self) -> str:
        """Tracebacks of all nodes, the first failure's last."""
        self._failures.settle()
        text, notes = self._failures.tracebacks(self._nodes.screen.label, False)
        self._notes = notes
        return text.decode("utf-8", "replace")

    def sentence(self) -> str:
        """The first failure, after `tracebacks`."""
        first = self.first
        if first is None:
            return ""
        words = [f"{first.name} {self._how(first.index, first.kind, first.detail)}", self._notes]
        if self.interrupted:
            were = "were" if len(self.interrupted) > 1 else "was"
            words.append(f"{ranks_text(self.interrupted)} {were} interrupted")
        return "; ".join(filter(None, words))

    def _how(self, node: int, kind: bytes, detail: str) -> str:
        if node in self.killed:
            return self.killed[node]
        if kind == report.EXITING:
            return f"called sys.exit({detail})"
        return f"raised {'KeyboardInterrupt' if kind == report.INTERRUPTED else detail}"
