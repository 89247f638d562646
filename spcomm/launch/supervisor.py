# SPDX-License-Identifier: MIT
"""One run, from the first node's start to the exit code: the launcher's event loop.

The run *ends* when all nodes have ended by themselves, or when there is a reason to end it: a failure, a
timeout, a signal, nobody who reads the output. Then nodes are told once, killed after the grace period, and
everything that they had written is still forwarded. Marks in shared memory (finished, died) come before
any of this, so that nodes which wait for a lost one are woken at once.
"""

import _signal
import os

from spcomm._core.errors import ranks_text
from spcomm.launch import report, where
from spcomm.launch.failures import Failures
from spcomm.launch.forward import Forwarder
from spcomm.launch.loop import Loop
from spcomm.launch.process import signal_name
from spcomm.launch.starter import BATCH, Starter
from spcomm.launch.stdin import Stdin

_SETTLE = 0.5  # seconds in which a NodeLostError may turn out to be the consequence of another failure
_RUNNING = "running"
_SILENT = "no answer"


class Supervisor:
    """Owns everything of a running run. Call `run` once."""

    def __init__(
        self, size: int, timeout: "float | None", grace: float, labels: bool, locatable: bool
    ) -> None:
        self.size = size
        self._timeout = timeout
        self._grace = grace
        self._labels = labels
        self._locatable = locatable  # nodes answer WHERE_SIGNAL
        self._loop = Loop()
        self._failures = Failures()
        self._forwarder = Forwarder(self._loop, labels, size == 1, self._cannot_write)
        self._started: set[int] = set()
        self._ended: dict[int, int] = {}  # rank → wait status
        self._next = 0  # rank to ask for
        self._reports = b""
        self._ready = False  # the warm process listens
        self._gone = False
        self._reason = ""  # why the run is being ended: failure, timeout, signal, reader, spcomm
        self._code = 0
        self._sentence = ""
        self._states: dict[int, str] = {}

    def run(self, starter: Starter, segment: object, signals: int, stdin: Stdin) -> int:
        """Start the nodes, forward their output, return the exit code. `signals`: the wake-up descriptor."""
        self._starter, self._segment, self._signals, self._stdin = starter, segment, signals, stdin
        self._report, write_report = os.pipe()
        self._where, write_where = os.pipe()
        os.set_blocking(self._report, False)
        starter.run(self.size, segment, write_report, write_where, {})
        os.close(write_report)
        os.close(write_where)
        self._loop.add(starter.fileno(), self._hear)
        self._loop.add(signals, self._signalled)
        self._loop.add(self._report, self._read_reports)
        if self._timeout is not None:
            self._loop.at("timeout", self._timeout, self._timed_out)
        self._start_more()
        while not self._gone:
            self._loop.turn()
            self._forwarder.flush()
        return self._conclude()

    # Starting

    def _start_more(self) -> None:
        while self._next < self.size and not self._reason and self._starter.room():
            end = min(self.size, self._next + BATCH)
            try:
                self._start(range(self._next, end))
            except OSError as error:
                self._cannot_start(error.errno or 0)
                return
            self._next = end

    def _start(self, ranks: range) -> None:
        """Two pipes and the standard input of each node. The warm process gets its ends; ours are read."""
        ours: list[int] = []
        theirs: list[int] = []
        streams: list[int] = []
        try:
            for rank in ranks:
                streams.append(self._stdin.descriptor(rank))
                for _target in (1, 2):
                    read, write = os.pipe()
                    ours.append(read)
                    theirs.append(write)
                    streams.append(write)
            self._starter.nodes(list(ranks), streams)
        except OSError:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        if ranks[0] == 0:
            self._stdin.started(self._loop)
        for at, rank in enumerate(ranks):
            self._forwarder.add(rank, ours[2 * at], ours[2 * at + 1])

    def _cannot_start(self, number: int) -> None:
        self._sentence = (
            f"only {len(self._started)} of {self.size} nodes could be started ({os.strerror(number)}); "
            "try fewer nodes (-n), or raise the limits (ulimit -u, ulimit -n, those of the container)"
        )
        self._end("spcomm", _signal.SIGKILL, 125)

    # What the warm process says

    def _hear(self) -> None:
        message = self._starter.receive()
        if message is None:
            self._loop.remove(self._starter.fileno())
            self._lost_warm_process()
            return
        verb = message[0]
        if verb == "exited":
            self._node_ended(message[1], message[2])
        elif verb == "started":
            self._started.update(message[1])
            self._start_more()
        elif verb == "unstarted":
            self._cannot_start(message[2])
        elif verb == "ready":
            self._warm_process_ready(message[1])
        elif verb == "missing":
            self._missing(message[1], message[2])
        elif verb == "gone":
            self._gone = True

    def _warm_process_ready(self, threads: int) -> None:
        self._ready = True
        if threads > 1:
            self._say(
                f"warning: the imported modules have started {threads - 1} threads, which nodes do not have; "
                "leave them out of --preload, or use --start exec"
            )

    def _missing(self, name: str, text: str) -> None:
        self._sentence = f"--preload: {name} cannot be imported" if text else f"no module named {name}"
        self._code = 125 if text else 127
        self._reason = "spcomm"
        if text:
            self._forwarder.write_error(text.encode("utf-8", "backslashreplace"))

    def _lost_warm_process(self) -> None:
        """It has ended without having said so. The kernel kills its nodes then."""
        if not self._gone and not self._reason:
            status = self._starter.status
            how = (
                f"was killed by {signal_name(status & 0x7F)}"
                if status & 0x7F
                else f"ended with code {status >> 8}"
            )
            doing = (
                "while it ran the nodes"
                if self._ready
                else "while it imported modules; --start exec avoids it"
            )
            self._sentence = f"the process that starts the nodes {how} {doing}"
            self._reason, self._code = "spcomm", 125
        self._gone = True

    def _node_ended(self, rank: int, status: int) -> None:
        self._ended[rank] = status
        self._read_reports()  # what it had to say comes before its end
        if status == 0 and not self._failures.known(rank):
            self._segment.mark_finished(rank)
            return
        self._segment.mark_died(rank, -(status & 0x7F) if status & 0x7F else status >> 8)
        self._failures.ended(rank, status)
        self._consider()

    # Failures

    def _read_reports(self) -> None:
        try:
            data = os.read(self._report, 65536)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove(self._report)
            return
        self._reports += data
        while len(self._reports) >= report.HEADER:
            length = int.from_bytes(self._reports[5:7], "little")
            if len(self._reports) < report.HEADER + length:
                return
            rank = int.from_bytes(self._reports[:4], "little")
            kind, payload = self._reports[4:5], self._reports[report.HEADER : report.HEADER + length]
            self._reports = self._reports[report.HEADER + length :]
            self._reported(rank, kind, payload)

    def _reported(self, rank: int, kind: bytes, payload: bytes) -> None:
        if kind == report.TEXT:
            self._failures.text(rank, payload)
            return
        detail = payload.decode("utf-8", "replace")
        if kind == report.INTERRUPTED and detail and self._states.get(rank) in (_RUNNING, _SILENT):
            self._states[rank] = detail
        self._failures.reported(rank, kind, detail)
        self._segment.mark_failing(rank, int(detail) if kind == report.EXITING else 1)
        self._consider()

    def _consider(self) -> None:
        """End the run if there is a failure that nobody else caused, or soon if there might be one."""
        if self._reason:
            return
        if self._failures.first is not None:
            self._end("failure", _signal.SIGTERM, 0, self._failures.first.rank)
        elif self._failures.first_lost is not None and not self._loop.waits("settle"):
            self._loop.at("settle", _SETTLE, self._settle)

    def _settle(self) -> None:
        self._failures.settle()
        self._consider()

    # Reasons to end the run

    def _end(self, reason: str, number: int, code: int, spared: "int | None" = None) -> None:
        """Tell all nodes but one, and kill what is left after the grace period."""
        if self._reason:
            return
        self._reason, self._code = reason, code
        self._failures.closed = True
        self._loop.forget("timeout")
        self._loop.forget("settle")
        if not self._ready:
            self._starter.kill()  # it imports, and no node exists yet
            return
        self._starter.go_on()
        self._starter.signal(number, spared)
        self._starter.no_more()
        self._loop.at("kill", self._grace, self._kill)

    def _kill(self) -> None:
        self._starter.go_on()
        self._starter.signal(_signal.SIGKILL)

    def _timed_out(self) -> None:
        self._locate()
        self._sentence = (
            f"the run took longer than --timeout {self._timeout:g} s; the nodes were stopped (exit code 124)"
        )
        self._end("timeout", _signal.SIGTERM, 124)

    def _signalled(self) -> None:
        for number in _read_all(self._signals):
            if number == _signal.SIGTSTP:
                self._stop()
            elif number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT):
                self._told_to_end(number)

    def _told_to_end(self, number: int) -> None:
        if self._reason:  # the second time: do not wait any longer
            self._kill() if self._ready else self._starter.kill()
            return
        if number == _signal.SIGINT:
            self._locate()
            self._sentence = "interrupted by Ctrl-C (exit code 130); the nodes were stopped"
        else:
            self._sentence = f"told to end by {signal_name(number)} (128+{number}); the nodes were stopped"
        self._end("signal", number, 128 + number)

    def _stop(self) -> None:
        """Ctrl-Z: the nodes, which are in process groups of their own, stop and go on with the launcher."""
        if not self._ready:
            return
        self._starter.signal(_signal.SIGSTOP)
        os.kill(os.getpid(), _signal.SIGSTOP)
        self._starter.signal(_signal.SIGCONT)

    def _locate(self) -> None:
        """Find out where each node is, before it is told to end."""
        alive = sorted(self._started - set(self._ended))
        answers = where.ask(self._starter, self._where, alive) if self._locatable and self._ready else {}
        for rank in range(self.size):
            if rank in self._ended:
                state = "finished"
            elif rank not in self._started:
                state = "not started"
            else:
                state = answers.get(rank, _SILENT) if self._locatable else _RUNNING
            self._states[rank] = state

    def _cannot_write(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):  # as in `| head`: nobody wants more, or to hear of it
            self._end("reader", _signal.SIGTERM, 128 + _signal.SIGPIPE)
            return
        self._sentence = f"the output cannot be written ({error.strerror}); the nodes were stopped"
        self._end("spcomm", _signal.SIGTERM, 125)

    def _conclude(self) -> int:
        """All nodes are gone: say what is to be said, in the order in which it is best read."""
        self._forwarder.finish(self._signals)
        self._read_reports()
        if not self._reason:
            self._failures.settle()
            self._reason = "failure" if self._failures.first is not None else ""
        tracebacks, notes = self._failures.tracebacks(self._labels, self._reason == "signal")
        self._forwarder.write_error(tracebacks)
        if self._states:
            self._forwarder.write_error(
                b"spcomm: where the nodes were:\n" + where.describe(self._states).encode()
            )
        if self._reason == "failure":
            self._code = self._failures.first.code
            self._sentence = self._failure_sentence(notes)
        if self._sentence:
            self._say(self._sentence)
        self._forwarder.drain(self._signals)
        self._starter.wait()
        return self._code

    def _failure_sentence(self, notes: str) -> str:
        first = self._failures.first
        parts = [first.sentence()] + ([notes] if notes else [])
        stopped = [
            rank for rank in range(self.size) if not self._failures.spoke(rank) and self._was_stopped(rank)
        ]
        if stopped and len(stopped) == self.size - 1:
            parts.append("the other nodes were stopped" if self.size > 2 else "the other node was stopped")
        elif stopped:
            parts.append(f"{ranks_text(stopped)} {'were' if len(stopped) > 1 else 'was'} stopped")
        return "; ".join(parts)

    def _was_stopped(self, rank: int) -> bool:
        """By us: it has ended by a signal, or never started."""
        return self._ended.get(rank, _signal.SIGTERM) & 0x7F in (_signal.SIGTERM, _signal.SIGKILL)

    def _say(self, text: str) -> None:
        self._forwarder.write_error(f"spcomm: {text}\n".encode())


def _read_all(fd: int) -> bytes:
    try:
        return os.read(fd, 512)
    except BlockingIOError:
        return b""
