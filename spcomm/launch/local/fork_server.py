# SPDX-License-Identifier: MIT
"""The fork server: imports once, forks the nodes, reaps them, and ends their leftover processes.

Life: receive the program → import → freeze → serve. It is a child of the launcher, has one thread and no sockets but
the one to the launcher, and is the parent of every node. Only it signals nodes, and it signals a process group before
it reaps the group's leader: until a leader is reaped its number cannot be given to another process, so no signal can
hit a stranger. That is why the launcher needs no descriptor for each node.

It never outlives the launcher: while it imports, the kernel kills it when the launcher ends; while it serves, it kills
every node's process group at the end of the socket, because the kernel alone would not do that for descendants of
nodes. The kernel kills nodes when the fork server ends.

Nodes are known by rank here. Programs of one group have a fork server each and share its ranks.

Messages in:  ("program", {...})  ("run", {...}) + report, where
              ("segments", device and inode of each) + segments of the boxes in which its nodes are
              ("nodes", ranks) + stdin, stdout, stderr of each
              ("signal", number, spared rank or None)  ("poke", rank, number)  ("end",)
Messages out: ("ready", threads)  ("started", ranks, processes)  ("unstarted", ranks, errno)
              ("exited", rank, wait status[, times])  ("missing", module, text)  ("gone",)
              ("signalled",)
"""

import _signal
import gc
import os
import select
import sys
import time

from spcomm.config import Membership
from spcomm.launch.base import nothing, process, report
from spcomm.launch.base.wire import Wire
from spcomm.launch.local import child, fast_exit

# Modules that the nodes of a Python program need in any case, beside spcomm. Without them, the program will fail.
DEFAULT_PRELOAD = ("numpy",)

_GONE = ("gone",)
# Signals that a user can repeat at will: while the launcher sends them, it does not read.
_UNANSWERED = (_signal.SIGKILL, _signal.SIGSTOP, _signal.SIGCONT)
_ALL_SIGNALS = _signal.valid_signals()
# Trackers of multiprocessing ignore the other signals, and must end by themselves (see process.end_children).
_DEADLY_TO_TRACKERS = (_signal.SIGKILL, _signal.SIGHUP, _signal.SIGQUIT)


def main() -> None:
    """Run the top level of the fork server, and of the nodes, in which `serve` returns."""
    launcher = int(sys.argv[2])
    process.die_with(launcher, _signal.SIGKILL)
    gc.disable()
    fast_exit.prepare()
    server = Server(Wire.adopt(int(sys.argv[1])), launcher)
    try:
        server.warm_up()
        node = server.serve()
    except KeyboardInterrupt:  # a node is interrupted later: it holds the signal back until its program runs
        process.end_by_interrupt()
        os.kill(os.getpid(), _signal.SIGINT)
    if node is None:
        os._exit(0)
    del server
    node.run()


class Server:
    """Runs the loop of the fork server."""

    def __init__(self, wire: Wire, launcher: int) -> None:
        self._wire = wire
        self._launcher = launcher
        self._ranks: dict[int, int] = {}  # pid → rank of the unreaped nodes
        self._born_ns: dict[int, int] = {}  # pid → start time, if it is needed
        self._left = 0  # nodes that have not ended, or not started
        self._run: dict = {}
        self._shared: dict[str, int] = {}
        self._segments: list[tuple[int, int, int]] = []  # of each box: descriptor, device, inode

    def warm_up(self) -> None:
        """Import the modules that the program will need. Ends the process when a requested module is missing."""
        message = self._wire.receive()
        if message is None:
            os._exit(0)
        plan = message[0][1]
        if plan["search_path"] is not None:
            sys.path[:] = plan["search_path"]
        elif plan["path_entry"] is not None:
            sys.path.insert(0, plan["path_entry"])
        if plan["kind"] != "executable":
            self._import(plan)
        self._program = child.Program(plan)
        self._program.compile()
        process.adopt_orphans()
        threads = _threads()
        fast_exit.seal()
        self._send(("ready", threads))

    def _import(self, plan: dict) -> None:
        if plan["kind"] == "module":
            import importlib.util

            top = plan["target"].partition(".")[0]
            if top not in sys.builtin_module_names and importlib.util.find_spec(top) is None:
                self._fail(("missing", plan["target"], ""))
        _import_spcomm()
        for name in plan["preload"] if plan["preload"] is not None else DEFAULT_PRELOAD:
            try:
                __import__(name)
            except Exception:
                if plan["preload"] is not None:
                    import traceback

                    self._fail(("missing", name, report.as_sent(traceback.format_exc(limit=-1))))

    def _fail(self, message: tuple) -> None:
        self._send(message)
        os._exit(1)

    def serve(self) -> "child.Node | None":
        """Follow the launcher's requests until all nodes have ended. Returns only in a forked process."""
        wake, self._wake = process.signal_pipe([_signal.SIGCHLD])
        self._close = [self._wire.fileno(), wake, self._wake]
        # From here on the end of the socket replaces it, see above; the signal has a stopped process read the socket.
        # It also wakes the loop: the launcher's end is still open if a process that it has forked has a copy.
        _signal.signal(_signal.SIGCONT, nothing)
        process.die_with(self._launcher, _signal.SIGCONT)
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self._wire.fileno(), select.POLLIN)
        while True:
            ready = [fd for fd, _events in poll.poll()]
            if wake in ready:
                _drain(wake)
                self._reap()
                if os.getppid() != self._launcher:
                    self._end()
            if self._wire.fileno() in ready:
                message = self._wire.receive()
                if message is None:
                    self._end()
                node = self._obey(*message)
                if node is not None:
                    return node
            if self._run and self._left == 0 and not self._run["stays"]:
                self._end()

    def _obey(self, message: tuple, descriptors: "list[int]") -> "child.Node | None":
        verb = message[0]
        if verb == "run":
            self._forget()
            self._run = message[1]
            self._left = self._run["nodes"]
            self._shared = dict(zip(("report", "where"), descriptors, strict=True))
        elif verb == "segments":
            self._segments += [(fd, *same) for fd, same in zip(descriptors, message[1], strict=True)]
        elif verb == "nodes":
            return self._start(message[1], descriptors)
        elif verb == "signal":
            self._signal(message[1], message[2])
            if message[1] not in _UNANSWERED:
                self._send(("signalled",))
        elif verb == "poke":
            self._poke(message[1], message[2])
        elif verb == "end":  # no more nodes will be requested
            self._left, self._run["stays"] = len(self._ranks), False
        return None

    def _forget(self) -> None:
        """Start another run, after all nodes of the last one have ended."""
        child.close_all([*self._shared.values(), *(fd for fd, _device, _inode in self._segments)])
        self._segments = []

    def _start(self, ranks: "list[int]", streams: "list[int]") -> "child.Node | None":
        """Fork a batch of nodes; `streams` holds three descriptors for each."""
        parent = os.getpid()
        mask = _signal.pthread_sigmask(_signal.SIG_SETMASK, _ALL_SIGNALS)
        pids: list[int] = []
        error, born_ns = 0, 0
        if self._run["stats"]:
            # Before the forks: a node may wait for a core from its first moment on.
            born_ns = time.monotonic_ns()
        try:
            # As little as possible between two forks: each page that is written here has to be copied.
            for _rank in ranks:
                pid = os.fork()
                if pid == 0:
                    return self._node(ranks[len(pids)], streams, 3 * len(pids), parent, mask)
                pids.append(pid)
        except OSError as failure:
            error = failure.errno or 0
        for pid, rank in zip(pids, ranks, strict=False):
            self._ranks[pid] = rank
            if born_ns:
                self._born_ns[pid] = born_ns
            if self._run["debug"].get(rank, {}).get("terminal"):
                continue  # it makes a session, which the leader of a group cannot
            try:
                os.setpgid(pid, pid)  # parent and child both call it, so that it is done whichever runs first
            except OSError:
                pass
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        child.close_all(streams)
        self._send(("started", ranks[: len(pids)], pids))
        if len(pids) < len(ranks):
            self._left -= len(ranks) - len(pids)
            self._send(("unstarted", ranks[len(pids) :], error))
        return None

    def _node(self, rank: int, streams: "list[int]", at: int, parent: int, mask: "set[int]") -> child.Node:
        """Set up the node in the forked process."""
        run, shared = self._run, self._shared
        self._wire.detach()
        segment, device, inode = self._segments[run["places"][rank]]
        others = [fd for fd, _device, _inode in self._segments if fd != segment]
        member = Membership(segment, rank, run["size"], device, inode, self._launcher, run["group"])
        node = child.Node(self._program, member, shared)
        node.debug = run["debug"].get(rank, {})
        if run["cpus"] is not None:
            process.bind(run["cpus"][rank])
        node.settle(parent, mask, streams[at : at + 3], [*self._close, *streams, *others])
        return node

    def _reap(self) -> None:
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            rank = self._ranks.pop(found.si_pid, None)
            if rank is not None:
                self._end_group(found.si_pid)
            times = self._times(found.si_pid)
            status = os.waitpid(found.si_pid, 0)[1]
            if rank is not None:
                self._left -= 1
                self._send(("exited", rank, status) if times is None else ("exited", rank, status, times))

    def _end_group(self, pid: int) -> None:
        """End the processes that a node has left running; this process is their parent now."""
        spared = {*self._ranks, pid}
        if set(process.children()) - spared:
            process.end_children(spared, pid)
        else:  # or the system does not list children
            _kill_group(pid, _signal.SIGKILL)

    def _times(self, pid: int) -> "tuple[int, int, int] | None":
        """Return times of a node to reap, if they were requested: its birth, its end, and how long it had no core."""
        born_ns = self._born_ns.pop(pid, 0)
        return (born_ns, time.monotonic_ns(), process.scheduled(pid)[1]) if born_ns else None

    def _signal(self, number: int, spared: "int | None" = None) -> None:
        for pid, rank in self._ranks.items():
            if rank != spared and number in _DEADLY_TO_TRACKERS:
                _kill(pid, number)  # the rest follows at its reaping
            elif rank != spared:
                _kill_group(pid, number)

    def _poke(self, rank: int, number: int) -> None:
        for pid, found in self._ranks.items():
            if found == rank:
                _kill(pid, number)

    def _send(self, message: tuple) -> None:
        try:
            self._wire.send(message)
        except OSError:
            if message != _GONE:
                self._end()  # the launcher is gone

    def _end(self) -> None:
        """End every node and all descendants of nodes, report that, and end."""
        self._signal(_signal.SIGKILL)
        process.end_children(set())
        self._send(_GONE)
        os._exit(0)


def _kill_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except OSError:
        _kill(pid, number)  # the group does not exist yet


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _import_spcomm() -> None:
    """Import the modules that `spcomm.startup` needs: public names are imported when they are first used."""
    import spcomm

    try:
        _ = spcomm.startup
    except (ImportError, AttributeError):
        pass  # the program will hit the same error, and report it, if it needs the module


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 512):
            pass
    except BlockingIOError:
        pass
