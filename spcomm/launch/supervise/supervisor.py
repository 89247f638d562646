# SPDX-License-Identifier: MIT
"""One run, from the first node's start to the exit code: the launcher's event loop.

The run *ends* when all nodes have ended by themselves, or when there is a reason to end it: a failure, a timeout,
a signal, a closed output. Then nodes are signalled once, killed after the grace period, and everything that they
had written is still forwarded. Marks in shared memory (finished, died) come before any of this, so that nodes which
wait for a lost one are woken at once. Nodes are known by index here (see groups).
"""

import _signal
import os
import time

from spcomm.launch.base import process, report
from spcomm.launch.base.loop import Loop
from spcomm.launch.base.record import dataclass
from spcomm.launch.local import stack_probe
from spcomm.launch.local.forward import Forwarder
from spcomm.launch.local.reports import Reports
from spcomm.launch.supervise.failures import Failure, Failures, told_to_end
from spcomm.launch.supervise.watchdog import RUNNING, SILENT, Watchdog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from spcomm.launch.cmdline.options import Options
    from spcomm.launch.cmdline.plan import Plan
    from spcomm.launch.local.display import Display
    from spcomm.launch.local.node_contract import Starter
    from spcomm.launch.local.run_processes import RunProcesses
    from spcomm.launch.local.stdin import Stdin
    from spcomm.launch.remote.transport_contract import Transport, Transports
    from spcomm.launch.room.fetch import RoomFiles
    from spcomm.launch.supervise.stats import Stats

FAILURE, DEADLOCK, TIMEOUT = (
    "failure",
    "deadlock",
    "timeout",
)  # reasons to end the nodes of a run, or of a call
_ENDING_S = 0.5  # seconds of silence after Ctrl-C
_FETCHING_S = 1.0  # seconds of silence while files come from the members of a room
_STARTING_S = 2.0  # seconds for fork servers to report the nodes they have started
_TRANSPORT_END_S = 30.0  # seconds for the gateways to end when all nodes have, beyond what a link may take
_PARTING = 2.0  # seconds for nodes to raise ConnectionLostError, before they are signalled to end
_SETTLE = 0.5  # seconds in which a NodeLostError may turn out to be the consequence of another failure


@dataclass(frozen=True, eq=False)
class Run:
    """The last stage of a start: its nodes are placed, and their fork servers started."""

    options: "Options"
    processes: "RunProcesses"
    stdin: "Stdin"
    display: "Display"
    transports: "Transports | None"  # between boxes
    cpus: "list[tuple[int, ...]] | None"  # the processors of nodes, in turn
    at_prompt: "int | None"  # the node whose debugger has the standard input
    room_files: "RoomFiles | None"  # that nodes of a room wrote


class Supervision:
    """The state of nodes that work, in a run or in a call of a `Cluster`, until there is a reason to end them early."""

    def __init__(
        self,
        run_processes: "RunProcesses",
        loop: Loop,
        stall_s: float,
        warn: "Callable[[str], None]",
        strict: bool = False,
    ) -> None:
        self._run_processes, self._loop = run_processes, loop
        self._failures = Failures(run_processes.names)
        self._watchdog = Watchdog(run_processes, loop, stall_s, self._deadlocked, warn, strict)
        self._reason = ""  # why the nodes are being ended
        self._report = ""  # of a deadlock
        self._states: dict[int, str] = {}  # where they were before

    def _end(self, reason: str, *how: "Any") -> None:
        """Have the nodes ended by `_stop_nodes(*how)`. Only the first reason counts, and no failure after it."""
        if self._reason:
            return
        self._reason = reason
        self._failures.closed = True
        self._watchdog.stop()
        self._loop.forget("timeout")
        self._loop.forget("settle")
        self._stop_nodes(*how)

    def _stop_nodes(self, number: int, code: int) -> None:
        """Have the nodes get this signal, and killed after some time. `code`: of the run."""
        raise NotImplementedError

    def _deadlocked(self, text: str, code: int) -> None:
        self._report = text
        self._end(DEADLOCK, _signal.SIGTERM, code)

    def _timed_out(self) -> None:
        self._locate()
        self._end(TIMEOUT, _signal.SIGTERM, 124)

    def _locate(self) -> None:
        """Find out where each node is, before it is signalled to end."""
        self._states = self._watchdog.places()


class Supervisor(Supervision):
    """Owns the whole state of a running run. Call `run` once."""

    def __init__(self, run: Run) -> None:
        loop = Loop()
        self._forwarder = Forwarder(loop, run.processes.size == 1, run.display, self._cannot_write)
        write, options = self._forwarder.write_text, run.options
        super().__init__(run.processes, loop, options.stall or 0.0, write, options.strict)
        self._options, self._display = options, run.display
        self._stdin, self._transports = run.stdin, run.transports
        self._cpus, self._at_prompt, self._files = run.cpus, run.at_prompt, run.room_files
        self._stats: Stats | None = None
        if run.options.stats:
            from spcomm.launch.supervise import stats

            self._stats = stats.Stats(run.processes, run.transports if run.options.stats == "all" else None)
        self._warned: dict[str, list[int]] = {}  # unmatched operations that count as errors: code → nodes
        self._ended: dict[int, int] = {}  # node → wait status
        self._code = 0
        self._sentence = ""
        self._is_lost = False  # a fork server was killed
        self._has_said_failure = False  # to the user of a debugger
        self._has_awaited = False  # it waits for a shared signal only once
        self._left_early: list[int] = []  # nodes whose gdb was left before they joined
        self._joined: set[Plan] = set()  # programs of which a node that joined has ended

    def run(self, signals: int) -> int:
        """Start the nodes, forward their output, return the exit code. `signals`: the wake-up descriptor."""
        self._signals = signals
        self._stdin.use(self._loop)
        self._children = set(process.children())  # fork servers, and earlier children
        self._reports = Reports(
            self._run_processes, self._loop, self._reported, self._cpus, self._stats is not None
        )
        self._listen()
        if self._options.timeout is not None:
            self._loop.at("timeout", self._options.timeout, self._timed_out)
        self._watchdog.start(self._reports.replies, self._ended, self._options.is_traced)
        self._display.start(self._loop, self._ended, self._stdin, self._pane_closed)
        self._start_more()
        while not self._run_processes.gone:
            self._loop.turn()
            self._forwarder.flush()
        self._end_transports()
        return self._conclude()

    def _listen(self) -> None:
        self._run_processes.listen(self._loop, self)
        for transport in self._transports or ():
            transport.listen(self._loop, lambda transport=transport: self._hear_transport(transport))
        self._loop.add(self._signals, self._signalled)

    # Starting

    def _start_more(self) -> None:
        if self._reason:
            return
        try:
            self._run_processes.start(self._forwarder, self._stdin, self._display.keyboards)
        except OSError as error:
            self._cannot_start(error.errno or 0)

    def _cannot_start(self, number: int) -> None:
        if self._reason not in ("", "spcomm"):
            return
        from spcomm import resource_limits

        self._sentence = (
            f"only {len(self._run_processes.started)} of {self._run_processes.size} nodes could be started "
            f"({os.strerror(number)}); try fewer nodes (-n), or {resource_limits.advice(number)}"
        )
        self._end("spcomm", _signal.SIGKILL, 125)

    # Messages of the fork servers

    def on_nonsense(self, fork_client: "Starter") -> None:
        self.on_failed(fork_client, f"{fork_client.host.title}: the box there sent a malformed message", 125)

    def on_gone(self, fork_client: "Starter", is_lost: bool) -> None:
        if is_lost:
            self._hear_shared_signal(fork_client.status)
            self._lost(fork_client)

    def on_exited(self, _fork_client: "Starter", node: int, status: int, *times: "Any") -> None:
        if self._stats is not None and times:
            self._stats.ended(node, times[0])
        self._node_ended(node, status)

    def on_signalled(self, _fork_client: "Starter") -> None:
        self._reports.publish()

    def on_started(self, *_message: object) -> None:
        self._start_more()

    def on_unstarted(self, _fork_client: "Starter", _nodes: "list[int]", number: int) -> None:
        self._cannot_start(number)

    def on_deadlock(self, _fork_client: "Starter", *proof: "Any") -> None:
        self._watchdog.proven(*proof)

    def on_report(self, _fork_client: "Starter", node: int, kind: bytes, payload: bytes) -> None:
        self._reported(node, kind, payload)

    def on_files(self, fork_client: "Starter", *listed: "Any") -> None:
        self._room_files(lambda files: files.listed(fork_client, *listed))

    def on_fetched(self, fork_client: "Starter", *message: "Any") -> None:
        self._room_files(lambda files: files.fetched(fork_client, *message))

    def on_warning(self, _fork_client: "Starter", text: str) -> None:
        self._say(f"warning: {text}")

    def on_text(self, _fork_client: "Starter", text: str) -> None:
        self._forwarder.write_text(text)

    def _room_files(self, call: "Callable[[RoomFiles], None]") -> None:
        """Note what became of them. While they come, only Ctrl-C ends the run."""
        files = self._files
        if files is None:
            return
        call(files)
        if not files.is_fetching:
            self._loop.forget("fetching")
        elif not self._loop.waits("fetching"):
            self._loop.at("fetching", _FETCHING_S, lambda: self._say(files.progress()))
        if self._have_all_ended:
            self._loop.forget("timeout")

    @property
    def _have_all_ended(self) -> bool:
        return len(self._ended) == self._run_processes.size

    def on_failed(self, _fork_client: "Starter", sentence: str, code: int) -> None:
        """Handle the end of a box on another host.

        What else is ready to be heard comes first: a server that ends tells the run before it cuts the boxes off, and
        the loop may look at the box first.
        """

        def end() -> None:
            if not self._reason:
                self._sentence = sentence
                self._end("spcomm", _signal.SIGTERM, code)

        if not self._loop.waits("box failed"):
            self._loop.at("box failed", 0.0, end)

    def on_told(self, fork_client: "Starter") -> None:
        """Handle a SIGTERM to a box on another host. Its job may end as a whole, and this process with it."""
        self._signalled()
        if not self._reason:
            self._sentence = (
                f"{fork_client.host.title}: the box there was told to end by SIGTERM (exit code 143), as by a "
                "scheduler; the nodes were stopped"
            )
            self._end("signal", _signal.SIGTERM, 128 + _signal.SIGTERM)

    def on_ready(self, _fork_client: "Starter", threads: int) -> None:
        if threads > 1:
            self._say(
                f"warning: the imported modules have started {threads - 1} threads, which nodes do not have; "
                "leave them out of --preload, or use --start exec"
            )
        if not self._run_processes.alone:
            self._start_more()

    def on_missing(self, _fork_client: "Starter", name: str, text: str) -> None:
        """Handle a fork server that lacks a module, and ends. Nothing has started."""
        if self._reason:
            return
        self._sentence = f"--preload: {name} cannot be imported" if text else f"no module named {name}"
        if text:
            self._forwarder.write_text(text)
        self._end("spcomm", _signal.SIGKILL, 125 if text else 127)

    def _lost(self, fork_client: "Starter") -> None:
        """Handle a fork server that ended without a report.

        The kernel kills its nodes then. Their descendants are adopted, and killed at the end.
        """
        self._is_lost = True
        if self._reason:
            return
        how = process.how_ended(fork_client.status)
        doing = (
            "while it ran the nodes"
            if fork_client.ready
            else "while it imported modules; --start exec avoids it"
        )
        names = dict.fromkeys(plan.name for plan in fork_client.plans)
        whose = "" if self._run_processes.alone else f" of {', '.join(names)}"
        self._sentence = (
            f"the process that starts the nodes{whose} {how} {doing}"
            if fork_client.host is None
            else f"{fork_client.host.title}: the process here that reaches it {how}"
        )
        self._end("spcomm", _signal.SIGTERM, 125)

    def _node_ended(self, node: int, status: int) -> None:
        self._reports.read_last(node, status)
        if status == 0 and self._was_debugger_left(node):
            status = 1 << 8
            self._say_debugger_was_left(node)
        self._note_joined(node)
        self._ended[node] = status
        self._reports.ended(node, status)
        if status != 0 or self._failures.known(node):
            self._failures.ended(node, status)
            self._hear_shared_signal(status)
        self._consider()

    def _was_debugger_left(self, node: int) -> bool:
        """Whether gdb left a live node: gdb ends well whatever became of its program, and others may need the node.

        A node that never joined may not use spcomm: it is to blame if another node of its program did join, or if some
        node turns out to wait for it.
        """
        plan = self._run_processes.plan(node)
        if node not in plan.debugged or plan.debug["tool"] != "gdb":
            return False
        from spcomm._core.segments import LIVE, STARTING

        segment, rank = self._run_processes.memory(node)
        state = segment.state(rank)
        if state == STARTING and not self._has_joined(plan):
            self._left_early.append(node)
        return state == LIVE or (state == STARTING and self._has_joined(plan))

    def _has_joined(self, plan: "Plan") -> bool:
        """Whether a node of this program has joined the run."""
        from spcomm._core.segments import LIVE

        memories = map(self._run_processes.memory, plan.indices)
        return plan in self._joined or any(segment.state(rank) == LIVE for segment, rank in memories)

    def _note_joined(self, node: int) -> None:
        """Call it before the end of the node is marked. Whoever waits for a node whose gdb was left is not to blame."""
        from spcomm._core.segments import STARTING

        plan = self._run_processes.plan(node)
        segment, rank = self._run_processes.memory(node)
        if not plan.debugged or segment.state(rank) == STARTING:
            return
        self._joined.add(plan)
        for left in self._left_early:
            if self._run_processes.plan(left) is plan and not self._failures.known(left):
                self._say_debugger_was_left(left)
                self._failures.ended(left, 1 << 8)

    def _say_debugger_was_left(self, node: int) -> None:
        if not self._reason:
            self._say(f"the debugger of {self._run_processes.names.nodes([node])} was left, so the run ends")

    def _pane_closed(self, node: int) -> None:
        """Act as when a terminal's window closes: its processes get a hang-up."""
        if node in self._run_processes.started and node not in self._ended:
            self._run_processes.poke(node, _signal.SIGHUP)

    # Transport processes

    def _hear_transport(self, transport: "Transport") -> None:
        message = transport.receive()
        if message is None:
            transport.leave(self._loop)
            if transport.status:  # otherwise its work is over
                self._disconnected(f"{transport.name} {transport.how()}", transport.box, transport.group)
        elif message[0] == "deadlock":
            self._watchdog.proven(transport.group, *message[1:])
        elif message[0] == "failed":
            from spcomm.launch.remote.framing import one_line

            several = transport.group is not None and len(self._run_processes.groups) > 1
            where = f"group {transport.group}: " if several else ""
            self._disconnected(where + one_line(message[1]), message[2], transport.group)
        elif message[0] == "lost":
            self._box_lost(*message[1:])
        else:
            self._forwarder.write_text(message[1])
            sentence = f"{transport.name} has failed: an error of spcomm; report it"
            self._disconnected(sentence, transport.box, transport.group)

    def _box_lost(self, number: int, box: int) -> None:
        """Handle a box on another host whose connection to this process has ended, as it has told the server."""
        host = self._run_processes.group_numbered(number).far[box]
        relays = [fork_client for fork_client in self._run_processes if fork_client.host is host]
        for relay in relays:  # the end of one here comes first, and ends the box there
            while not relay.gone and relay.has_news(0.0):
                self._run_processes.hear(relay)
        sentence = (
            f"{host.title}: the connection to it has ended, with its nodes: its other end there was killed"
        )
        self._disconnected(sentence, box, number)
        for relay in relays:
            relay.abandon()

    def _disconnected(self, sentence: str, culprit: int, number: "int | None" = None) -> None:
        """Mark the connection as lost: nodes that wait learn of it at once, and end by themselves, as a rule.

        `number`: of the group whose connection it is; None: of all groups that have one.
        """
        if self._reason:
            return
        self._sentence = f"{sentence}; the nodes were stopped (exit code 125)"
        for group in self._run_processes.groups:
            if group.boxes > 1 and number in (None, group.number):
                for segment in group.segments:
                    segment.mark_disconnected(culprit)
        self._end("spcomm", _signal.SIGTERM, 125, None, _PARTING)

    def _end_transports(self) -> None:
        """Finish after all nodes have ended. Their messages are still carried, if the run went well."""
        if self._transports is None:
            return
        self._loop.at("carrying", _TRANSPORT_END_S + self._options.link_timeout, self._carried_too_long)
        while not self._reason and not self._transports.over:
            self._loop.turn()
            self._forwarder.flush()
        for transport in self._transports:
            transport.leave(self._loop)
        self._transports.close(_SETTLE if self._stats is not None and not self._reason else 0.0)
        self._loop.forget("carrying")

    def _carried_too_long(self) -> None:
        self._disconnected(f"all nodes have ended, and {self._transports.left()} did not", -1)

    # Failures

    def _reported(self, node: int, kind: bytes, payload: bytes) -> None:
        if kind == report.TEXT:
            self._failures.text(node, payload)
            self._display.traceback(node, payload)
            return
        detail = payload.decode("utf-8", "replace")
        if kind == report.CRASHED:
            self._failures.crashed(node, detail)
            return
        if kind == report.INTERRUPTED and detail and self._states.get(node) in (RUNNING, SILENT):
            self._states[node] = detail
        self._failures.reported(node, kind, detail)
        self._consider()

    def _consider(self) -> None:
        """End the run if some failure is not a consequence, or soon if there might be one.

        While a debugger has the standard input, its user looks into the failure: the run ends with the debugger.
        """
        if self._reason:
            return
        if self._failures.first is None and self._failures.first_lost is not None and self._left_early:
            self._say_debugger_was_left(self._left_early[0])
            self._failures.ended(self._left_early[0], 1 << 8)
        if self._failures.first is not None and self._is_at_prompt():
            self._say_debugger_goes_on()
        elif self._failures.first is not None:
            number = _signal.SIGINT if self._failures.first.is_interrupt else _signal.SIGTERM
            self._end(FAILURE, number, 0, self._failures.first.index)
        elif self._failures.first_lost is not None and not self._loop.waits("settle"):
            self._loop.at("settle", _SETTLE, self._settle)

    def _is_at_prompt(self) -> bool:
        """Whether the debugger that has the standard input still runs."""
        return self._at_prompt is not None and self._at_prompt not in self._ended

    def _say_debugger_goes_on(self) -> None:
        first = self._failures.first
        if not self._has_said_failure and first is not None and first.index != self._at_prompt:
            self._has_said_failure = True
            debugged = self._run_processes.names.nodes([self._at_prompt])
            self._say(f"{first.sentence()}; the run ends when the debugger of {debugged} is left")

    def _settle(self) -> None:
        if self._watchdog.is_failure_due(self._failures.known):
            self._loop.at("settle", _SETTLE, self._settle)
            return
        self._reports.read()  # one may have come just before its error was dead
        self._failures.settle()
        self._consider()

    # Reasons to end the run

    def _stop_nodes(self, number: int, code: int, spared: "int | None" = None, parting: float = 0.0) -> None:
        """Signal all nodes but one (to end within that many seconds), and kill the rest after the grace period."""
        self._code = code
        self._stdin.release(self._run_processes)
        self._loop.at("part", parting, lambda: self._run_processes.end(number, spared))
        self._loop.at("kill", parting + self._options.grace, self._run_processes.kill)

    def _timed_out(self) -> None:
        seconds = f"{self._options.timeout:g} s"
        self._sentence = (
            f"the run took longer than --timeout {seconds}; the nodes were stopped (exit code 124)"
        )
        super()._timed_out()

    def _signalled(self) -> None:
        for number in _read_all(self._signals):
            if number == _signal.SIGTSTP:
                self._stop()
            elif number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT):
                self._told_to_end(number)
            elif number in process.FORWARDED:
                self._forward_signal(number)

    def _hear_shared_signal(self, status: int) -> None:
        """Handle a pending signal before the end of a process that it killed: the signal is then the reason."""
        self._signalled()
        if not (self._reason or self._has_awaited):
            self._has_awaited = process.await_shared_signal(self._signals, status)
            self._signalled()

    def _forward_signal(self, number: int) -> None:
        """Hand a batch system's warning to each node's process, and not to what the node has started."""
        self._hear_of_starts([fork_client for fork_client in self._run_processes if fork_client.ready])
        for node in sorted(set(self._run_processes.started) - set(self._ended)):
            self._run_processes.poke(node, number)

    def _told_to_end(self, number: int) -> None:
        if number == _signal.SIGINT and self._is_at_prompt() and not self._reason:
            self._run_processes.poke(self._at_prompt, number)  # Ctrl-C belongs to the user of the debugger
            return
        files = self._files
        if files is not None and (self._reason or self._have_all_ended):
            files.stop()
        if self._reason:  # the second time: do not wait any longer
            self._run_processes.kill()
            return
        what = "the nodes had ended" if self._have_all_ended else "the nodes were stopped"
        if number == _signal.SIGINT and not self._have_all_ended:
            self._locate()
        self._sentence = f"{told_to_end(number)}; {what}"
        self._end("signal", number, 128 + number)
        if number == _signal.SIGINT:
            self._loop.at("ending", _ENDING_S, self._say_ending)

    def _say_ending(self) -> None:
        """Say that the end takes its time: boxes elsewhere, and programs that clean up, may need seconds."""
        left = [index for index in self._run_processes.started if index not in self._ended]
        what = self._run_processes.names.nodes(left) if left else "the run"
        self._forwarder.write_text(f"spcomm: ending {what} …; Ctrl-C once more does not wait for that\n")

    def _stop(self) -> None:
        """Handle Ctrl-Z: the nodes, which are in process groups of their own, stop and go on with the launcher."""
        self._run_processes.stop()
        self._display.clear()
        self._stdin.stopping(self._run_processes)
        os.kill(os.getpid(), _signal.SIGSTOP)
        self._stdin.go_on(self._run_processes)

    def _locate(self) -> None:
        self._hear_of_starts(list(self._run_processes))
        super()._locate()

    def _hear_of_starts(self, fork_clients: "list[Starter]") -> None:
        """Nodes may have printed, and the report of their start may still be under way."""
        end = time.monotonic() + _STARTING_S
        for fork_client in fork_clients:
            while (
                fork_client.unanswered
                and not fork_client.gone
                and fork_client.has_news(end - time.monotonic())
            ):
                self._run_processes.hear(fork_client)

    def _cannot_write(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError) and error.filename is None:  # `| head`: the reader closed it
            self._end("reader", _signal.SIGTERM, 128 + _signal.SIGPIPE)
            return
        where = f" to {error.filename}" if error.filename else ""
        self._sentence = f"the output cannot be written{where} ({error.strerror}); the nodes were stopped"
        self._end("spcomm", _signal.SIGTERM, 125)

    def _conclude(self) -> int:
        """Print the final reports after all nodes are gone, in the most readable order."""
        watched = self._display.stop()
        for number in process.FORWARDED:  # for no node; only other signals are to make the rest impatient
            _signal.signal(number, _signal.SIG_IGN)
        self._forwarder.finish(self._signals)
        if self._stats is None:  # else its tables say more
            self._forwarder.write_text(watched)
        self._reports.read()
        if not self._reason:
            self._failures.settle()
            self._reason = FAILURE if self._failures.first is not None else ""
        is_interrupted = self._failures.first is not None and self._failures.first.is_interrupt
        tracebacks, notes = self._failures.tracebacks(
            self._display.label, self._reason == "signal" or is_interrupted
        )
        self._forwarder.write_error(tracebacks)
        if self._states:
            table = stack_probe.describe(self._states, self._run_processes.names)
            self._forwarder.write_text(f"spcomm: where the nodes were:\n{table}")
        if self._reason == FAILURE:
            self._code = self._failures.first.code
            self._sentence = self._failure_sentence(notes)
        elif not self._reason:
            self._report_unmatched()
        if not self._reason and self._warned:
            self._code = 1
            self._sentence = self._strict_sentence()
        self._forwarder.write_text(self._report)
        if self._stats is not None:
            self._forwarder.write_text(self._stats.text())
        if self._files is not None:
            text, is_missing = self._files.report(not self._reason and not self._code)
            self._forwarder.write_text(text)
            self._code = self._code or (125 if is_missing and not self._reason else 0)
        if self._sentence:
            self._say(self._sentence)
        self._forwarder.drain(self._signals)
        self._run_processes.wait()
        if self._is_lost:
            process.end_children(self._children)
        self._stdin.finish(self._code)
        return self._code

    def _report_unmatched(self) -> None:
        """Check whether a successful run has left messages that were never received, or barriers never waited for."""
        for group in self._run_processes.groups:
            where = "" if len(self._run_processes.groups) == 1 else f" of group {group.number}"
            text, found = group.unmatched(where, self._options.strict)
            self._report += text
            for code, ranks in found.items() if self._options.strict else ():
                self._warned.setdefault(code, []).extend(map(group.index, ranks))

    def _strict_sentence(self) -> str:
        from spcomm.diagnose import unmatched

        names = self._run_processes.names
        return unmatched.refusal({code: names.nodes(sorted(nodes)) for code, nodes in self._warned.items()})

    def _failure_sentence(self, notes: str) -> str:
        size = self._run_processes.size
        # A node that has not ended was never started.
        ended = dict.fromkeys(range(size), int(_signal.SIGTERM)) | self._ended
        return "; ".join([self._failures.outcome(notes, ended, size), *self._advice(self._failures.first)])

    def _advice(self, first: Failure) -> "list[str]":
        chosen = sorted(self._stdin.chosen)
        if first.detail != "EOFError" or first.index in chosen:
            return []
        readers = self._run_processes.names.nodes(chosen) if chosen else "no node"
        return [f"the standard input goes to {readers}: read it there, or run with --stdin all"]

    def _say(self, text: str) -> None:
        self._forwarder.write_text(f"spcomm: {text}\n")


def _read_all(fd: int) -> bytes:
    try:
        return os.read(fd, 512)
    except BlockingIOError:
        return b""
