# SPDX-License-Identifier: MIT
"""`spcomm box`: one box of a run whose launcher is on another machine. The launcher starts it through ssh.

The box reads its orders and secrets from its standard input and writes its reports to its standard output, as
frames. Like the launcher for boxes of its own machine, it has a fork server for each program, and for each group memory
and, if the group has other boxes, a gateway. Nodes are known by index, see groups.
Everything here ends with the standard input, or when the launcher has sent nothing for `--link-timeout` seconds.
"""

import os
import signal
import sys
from typing import TYPE_CHECKING

from spcomm.launch.base import nothing, process
from spcomm.launch.remote import CLOCK, LINES
from spcomm.launch.remote.framing import MOST, FrameError, Frames, Outlet

if TYPE_CHECKING:
    from typing import Any

    from spcomm.launch.local.node_contract import Starter

_PIECE = 1 << 16
_TRANSPORT_END_S = 30.0  # for the gateway to end after all nodes
_LATE_S = 1.0  # for frames that the system still holds after this process was stopped
_LOOK_S = 0.06  # between two looks for a deadlock; two of them make a proof


def main(words: "list[str]") -> int:
    """Run until the nodes of this box have ended."""
    if words or os.isatty(0):
        sys.stderr.write("spcomm box: is started by spcomm run --host, on the hosts that it names\n")
        return 125
    if not getattr(sys.flags, "safe_path", False) and sys.path and _is_current(sys.path[0]):
        del sys.path[0]  # the folder where ssh started is irrelevant to the program
    frames = Frames(os.dup(0), os.dup(1), True)
    withdraw()
    box = Box(frames)
    box.heed_signals()
    box.tells_server = True
    box.run()
    return 0


def _is_current(folder: str) -> bool:
    try:
        return folder in ("", os.getcwd())
    except FileNotFoundError:  # it is gone, and Python has not put it into sys.path
        return False


def withdraw() -> None:
    """Detach this process from the standard streams, and from a terminal's signals."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    for number in (signal.SIGINT, signal.SIGHUP):  # the end of the input replaces them
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, nothing)  # not ignored: the nodes would inherit that


class Box:
    """The launcher's work for its own boxes, without its decisions, which the launcher itself takes."""

    def __init__(self, frames: "Any") -> None:
        """`frames`: `Frames`, or an object with the same methods."""
        from spcomm.launch.base.loop import Loop

        self._loop = Loop()
        self._frames = frames
        self._about: dict = {}
        self._run: Any = None  # the nodes here: `RunProcesses`
        self._gateways: list[Any] = []
        self._threads = 1  # of the fork server that has most
        self._reports: Any = None  # of nodes that end: `Reports`
        self._pipes: dict[int, tuple[int, int]] = {}  # descriptor → index, 1 or 2
        self._inputs: dict[int, Outlet] = {}
        self._paused = False
        self._ending = False  # the launcher has a reason to end the run
        self._signals = -1  # a pipe
        self._has_awaited = False  # it waits for a shared signal only once
        self.tells_server = False  # when the launcher's command here has ended
        self._secrets = b""  # of its groups
        self._proven: set[tuple[int, bool, int, int]] = set()  # waits that the launcher has been told of
        self._patience_s: float | None = None  # for the last frames to arrive; None: no limit

    def run(self) -> None:
        from spcomm.launch.remote import versions

        self._greet()
        self._frames.send(["hello", versions.mine()])
        self._frames.listen(self._loop, self._hear)
        while True:
            self._loop.turn()
            self._flush()

    def heed_signals(self) -> None:
        """Report SIGTERM to the launcher, which decides: a scheduler sends it to all processes of a job's step."""
        self._signals, _ = process.signal_pipe([signal.SIGTERM])
        self._loop.add(self._signals, self._signalled)

    def _signalled(self) -> None:
        try:
            came = self._signals >= 0 and signal.SIGTERM in os.read(self._signals, _PIECE)
        except BlockingIOError:
            return
        if came and not self._ending:
            self._ending = True  # the others here may have got it, too
            self._frames.send(["told"])

    def _hear_shared_signal(self, status: int) -> None:
        """Handle a pending signal before the end of a process that it killed: the signal is then the reason."""
        self._signalled()
        if self._signals >= 0 and not (self._ending or self._has_awaited):
            self._has_awaited = process.await_shared_signal(self._signals, status)
            self._signalled()

    def _greet(self) -> None:
        self._frames.greet()

    def _hear(self) -> None:
        try:
            frames = self._frames.receive()
        except FrameError:
            frames = None
        if frames is None:
            self._end_processes()
            if self.tells_server and self._run is not None and not self._ending:
                from spcomm.launch.remote import boxparts

                boxparts.take_leave(self._about, self._secrets)
            self._leave()
            return
        for message, data in frames:
            self._heard(message, data)

    def _heard(self, message: list, data: bytes) -> None:
        verb, *rest = message
        if verb == "begin":
            self._begin(rest[0], data)
        elif verb == "nodes":
            self._nodes(*rest)
        elif verb == "stdin":
            self._stdin(rest[0], data)
        elif verb in ("signal", "poke", "end", "ask"):
            self._told(verb, *rest)
        elif verb == "here":
            self._loop.at("silence", self._about["link_timeout"], self._silence)

    def _silence(self) -> None:
        """Handle a launcher that sent nothing for `--link-timeout` seconds."""
        self._loop.at("silence", _LATE_S, self._cut_off)

    def _cut_off(self) -> None:
        self._frames.broken = True  # nor can it receive anything
        self._leave()

    # The start

    def _begin(self, about: dict, secrets: bytes) -> None:
        from spcomm._core.errors import SpcommError
        from spcomm.launch.base.usage import UsageError

        self._about, self._secrets = about, secrets
        process.adopt_orphans()
        try:
            self._start(secrets)
        except UsageError as error:
            self._fail(str(error).removeprefix("spcomm run: "), error.code)
        except MemoryError:
            self._fail("not enough memory for the message buffers; try smaller --ring, --arena")
        except (OSError, SpcommError) as error:
            self._fail(str(error))

    def _start(self, secrets: bytes) -> None:
        from spcomm.launch.local.fork_client import ForkClient
        from spcomm.launch.local.reports import Reports
        from spcomm.launch.local.run_processes import RunProcesses
        from spcomm.launch.remote import boxparts

        about = self._about
        limit = boxparts.raise_limit()
        clients = [ForkClient(boxparts.plan(one), process.WHERE_SIGNAL, limit) for one in about["programs"]]
        groups = [boxparts.group(one, boxparts.is_busy(about)) for one in about["groups"]]
        self._run = RunProcesses(clients, groups)
        self._connect(groups, secrets)
        cpus = boxparts.cpus(about, groups)
        self._reports = Reports(self._run, self._loop, self._reported, cpus, about["stats"])
        self._run.listen(self._loop, self)

    def _connect(self, groups: "list[Any]", secrets: bytes) -> None:
        """Start the gateways, and the search for deadlocks where no other process has the memory: groups of one box."""
        from spcomm.launch.remote import boxparts

        self._gateways = boxparts.gateways(self._about, groups, secrets)
        for gateway in self._gateways:
            self._loop.add(gateway.fileno(), lambda gateway=gateway: self._hear_gateway(gateway))
        self._alone = [group for group in groups if group.boxes == 1]
        if self._alone:
            self._loop.at("look", _LOOK_S, self._look)

    def _here(self) -> "list[tuple[Any, Any, list[int]]]":
        """Each group, its memory here, and its nodes here."""
        found = []
        for group, about in zip(self._run.groups, self._about["groups"], strict=True):
            found.append((group, group.segments[about["box"]], group.ranks(about["box"])))
        return found

    def _nodes(self, indices: "list[int]", reading: "list[int]") -> None:
        """Start these nodes; `reading`: those that have a standard input."""
        inputs = set(reading)
        for client in self._run:
            some = [index for index in indices if index in client.indices]
            if some:
                self._start_nodes(client, some, inputs)

    def _start_nodes(self, client: "Any", indices: "list[int]", reading: "set[int]") -> None:
        streams = []
        for index in indices:
            streams.append(self._input(index) if index in reading else os.open(os.devnull, os.O_RDONLY))
            for target in (1, 2):
                read, write = os.pipe()
                os.set_blocking(read, False)
                self._pipes[read] = index, target
                if not self._paused:
                    self._loop.add(read, lambda read=read: self._read(read))
                streams.append(write)
        client.start(indices, streams)
        for fd in streams:
            os.close(fd)

    def _input(self, index: int) -> int:
        """Make the standard input of a node. Return the node's end."""
        stdin, write = os.pipe()
        self._inputs[index] = Outlet(write)
        return stdin

    def _close_input(self, outlet: Outlet) -> None:
        os.close(outlet.fd)

    # While it runs

    def _told(self, verb: str, *rest: "Any") -> None:
        if self._run is None:
            return
        if verb in ("poke", "ask"):
            self._run.poke(*rest) if verb == "poke" else self._asked(*rest)
            return
        self._ending = self._ending or verb == "end" or rest[0] == signal.SIGKILL
        for client in self._run:
            if verb == "end":
                client.end()
                if not client.ready:
                    client.kill()
            else:
                client.go_on()
                client.signal(*rest)
        self._consider()

    def _asked(self, number: int, question: str, indices: "list[int]") -> None:
        from spcomm.launch.remote import box_proxy

        if question == CLOCK:
            about = box_proxy.clock()
        elif question == LINES:
            started = self._run.started
            running = {index: started[index] for index in indices if index in started}
            about = box_proxy.lines(self._reports.replies, self._run.poke, running)
        else:
            about = box_proxy.look([(group.number, segment, ranks) for group, segment, ranks in self._here()])
        self._frames.send(["answer", number, about])

    def on_gone(self, client: "Starter", is_lost: bool) -> None:
        self._hear_shared_signal(client.status if is_lost else 0)
        if is_lost and not self._ending:
            whose = "" if self._run.alone else f" of {client.plans[0].name}"
            self._fail(f"the process that starts the nodes{whose} there {process.how_ended(client.status)}")
        client.wait()
        if self._run.gone:
            self._loop.at("carrying", _TRANSPORT_END_S, self._carried_too_long)
            self._consider()

    def on_ready(self, _client: "Starter", threads: int) -> None:
        self._threads = max(self._threads, threads)
        if self._run.ready:
            self._frames.send(["ready", self._threads])

    def on_started(self, _client: "Starter", *nodes: "Any") -> None:
        self._frames.send(["started", *nodes])

    def on_unstarted(self, _client: "Starter", *nodes: "Any") -> None:
        self._frames.send(["unstarted", *nodes])

    def on_missing(self, _client: "Starter", *module: str) -> None:
        self._frames.send(["missing", *module])

    def on_exited(self, _client: "Starter", index: int, status: int, *times: "Any") -> None:
        self._hear_shared_signal(status)
        self._reports.read_last(index, status)
        self._run.started.pop(index, None)
        self._reports.ended(index, status)
        self._frames.send(["exited", index, status, *times])

    def on_signalled(self, _client: "Starter") -> None:
        if self._run.signalled:
            self._reports.publish()
            self._frames.send(["signalled"])

    def _reported(self, index: int, kind: bytes, payload: bytes) -> None:
        self._frames.send(["report", index, kind.decode("ascii", "replace")], payload)

    def _hear_gateway(self, gateway: "Any") -> None:
        fd = gateway.fileno()
        self._signalled()
        message = gateway.receive()
        if message is None:
            self._loop.remove(fd)
            if gateway.status and not self._ending:
                self._mark_disconnected(gateway)
                self._fail(f"{self._name(gateway)} {gateway.how()}; the nodes were stopped (exit code 125)")
            self._consider()
        elif message[0] == "deadlock":
            self._frames.send(["deadlock", gateway.group, *message[1:]])
        elif not self._ending:
            if message[0] != "failed":
                sys.stderr.write(message[1])
            several = len(self._run.groups) > 1
            text = (
                f"group {gateway.group}: " * several + message[1]
                if message[0] == "failed"
                else f"{self._name(gateway)} has failed, an error of spcomm; report it"
            )
            self._fail(f"{text}; the nodes were stopped (exit code 125)")

    def _name(self, gateway: "Any") -> str:
        several = len(self._run.groups) > 1
        return f"the gateway of group {gateway.group} there" if several else "the gateway there"

    def _mark_disconnected(self, gateway: "Any") -> None:
        self._run.group_numbered(gateway.group).segments[gateway.box].mark_disconnected(gateway.box)

    def _look(self) -> None:
        from spcomm._core import diagnose

        for group in self._alone:
            segment = group.segments[0]
            for in_vain in (False, True):
                waits = {rank: segment.wait(rank) for rank in segment.look(in_vain)}
                found = {rank: wait for rank, wait in waits.items() if wait}
                begun = {(group.number, in_vain, rank, wait.since_ns) for rank, wait in found.items()}
                if not begun <= self._proven:
                    self._proven |= begun
                    self._frames.send(["deadlock", group.number, diagnose.packed(found), in_vain])
                if found and not in_vain:
                    return
        self._loop.at("look", _LOOK_S, self._look)

    def _carried_too_long(self) -> None:
        self._fail("all nodes there have ended, and its gateway has not")

    # Data that pass through

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, _PIECE)
        except BlockingIOError:
            return
        except OSError:  # a socket whose other end was killed
            data = b""
        index, target = self._pipes[fd]
        if data:
            self._frames.send(["out", index, target], data)
            return
        self._loop.remove(fd)
        os.close(fd)
        del self._pipes[fd]
        self._frames.send(["closed", index, target])

    def _stdin(self, index: int, data: bytes) -> None:
        outlet = self._inputs.get(index)
        if outlet is not None:
            outlet.add(data)
            outlet.ending = not data

    def _flush(self) -> None:
        if self._frames.flush():
            self._loop.remove(self._frames.writing)
        else:
            self._loop.add(self._frames.writing, nothing, write=True)
        if self._frames.broken:
            self._leave()
        if (self._frames.kept > MOST) != self._paused:
            self._paused = not self._paused
            for fd in self._pipes:
                if self._paused:
                    self._loop.remove(fd)
                else:
                    self._loop.add(fd, lambda fd=fd: self._read(fd))
        for index, outlet in list(self._inputs.items()):
            taken = outlet.flush()
            if taken:
                self._frames.send(["taken", index, taken])
            if outlet.kept:
                self._loop.add(outlet.fd, nothing, write=True)
                continue
            self._loop.remove(outlet.fd)
            if taken is None or outlet.ending:
                self._close_input(outlet)
                del self._inputs[index]
            if taken is None:
                self._frames.send(["taken", index, -1])

    # The end

    def _consider(self) -> None:
        """Send all final reports and end, after nodes and gateway are gone."""
        is_carrying = not self._ending and any(not gateway.gone for gateway in self._gateways)
        if self._run is None or not self._run.gone or is_carrying:
            return
        self._reports.read()
        self._send_rest()
        self._send_findings()
        self._part()

    def _part(self) -> None:
        """End after all reports are sent."""
        self._frames.send(["gone"])
        self._leave()

    def _send_rest(self) -> None:
        for fd in list(self._pipes):
            while fd in self._pipes and self._rest(fd):
                pass

    def _send_findings(self) -> None:
        """Send the traces of the nodes here, and what is known of each group."""
        if self._about["is_traced"]:
            from spcomm.trace import remote_traces

            for _group, segment, ranks in self._here():
                for rank, lost, piece in remote_traces.packed(segment.fd, ranks):
                    self._frames.send(["trace", rank, lost], piece)
        known = [[group.number, self._known(segment, ranks)] for group, segment, ranks in self._here()]
        self._frames.send(["noted", known])

    def _rest(self, fd: int) -> bool:
        """Forward the rest of a pipe. A process that a node left behind may keep it open."""
        index, target = self._pipes[fd]
        try:
            data = os.read(fd, _PIECE)
        except OSError:  # it is empty, or its other end was killed
            return False
        if data:
            self._frames.send(["out", index, target], data)
        return bool(data)

    def _known(self, segment: "Any", ranks: "list[int]") -> dict:
        known: dict = {}
        if self._about["stats"]:
            known["counts"], known["times"] = segment.counts(ranks), segment.times(ranks)
        known["has_left"] = not self._ending and segment.has_left()
        if known["has_left"] or (self._about["strict"] and not self._ending):  # else lines are unused
            from spcomm.diagnose import unmatched

            known["left"] = unmatched.packed([(segment.fd, ranks)])
        return known

    def _fail(self, sentence: str, code: int = 125) -> None:
        self._frames.send(["failed", sentence, code])
        self._leave()

    def _leave(self) -> None:
        """End everything here. No process is left."""
        self._end_processes()
        self._tidy()
        self._frames.finish(self._patience_s)
        os._exit(0)

    def _end_processes(self) -> None:
        from spcomm.launch.base.process import end_children

        for gateway in self._gateways:
            gateway.close()
        self._gateways = []
        for client in self._run or ():
            if not client.ended:
                client.kill()
                client.wait()
        end_children(set())

    def _tidy(self) -> None:
        """Clean up after all processes are gone; a subclass may have more to remove."""
