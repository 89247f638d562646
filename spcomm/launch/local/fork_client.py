# SPDX-License-Identifier: MIT
"""The launcher's end of the fork server: sends it nodes and signals, receives reports of their ends."""

import _signal
import os
import select
import sys

from spcomm.launch.base import process
from spcomm.launch.base.wire import MOST_DESCRIPTORS, Wire
from spcomm.launch.cmdline.plan import Plan, inside

TYPE_CHECKING = False
if TYPE_CHECKING:  # imported once the fork server runs
    from collections.abc import Sequence

    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.remote.hosts import Host

# Finds this package in any place, and without looking into the current directory, where a student may well have a
# random.py. The fork server gives the program the sys.path[0] it has under plain Python. Looking for garbage among
# imports would take a fifth of their time.
_BOOTSTRAP = (
    "import gc, sys\n"
    "gc.disable()\n"
    "if not sys.flags.safe_path: del sys.path[0]\n"
    "sys.path.insert(0, sys.argv[3])\n"
    "from spcomm.launch.base.process import close_inherited\n"
    "close_inherited(int(number) for number in (sys.argv[1], *sys.argv[4:]))\n"
    "from spcomm.launch.{module} import main\n"
    "del sys.path[0]\n"
    "gc.enable()\n"
    "main()\n"
)
BATCH = MOST_DESCRIPTORS // 3  # nodes requested in one message
_IN_FLIGHT = 2 * BATCH  # nodes requested and not answered: descriptors in transit have a limit, too


def spawn(
    module: str,
    flags: "list[str]",
    folder: "str | None",
    environment: "dict[str, str]",
    kept: "Sequence[int]" = (),
) -> "tuple[Wire, int]":
    """Start a Python process that runs `main` of this module; return our end of a wire to it, and its process id.

    It has the standard streams, and of the other descriptors that a child inherits only those in `kept`.
    """
    ours, theirs = Wire.pair()
    package = os.path.dirname(os.path.abspath(sys.modules["spcomm"].__path__[0]))
    arguments = [
        sys.executable,
        *flags,
        "-c",
        _BOOTSTRAP.format(module=module),
        str(theirs.fileno()),
        str(os.getpid()),
        package,
        *map(str, kept),
    ]
    os.set_inheritable(theirs.fileno(), True)
    with inside(folder):
        pid = os.posix_spawn(sys.executable, arguments, environment, setsid=True, **process.CLEAN)
    theirs.close()
    return ours, pid


class ForkClient:
    """The launcher's view of one program's fork server: nodes are known by index here, by rank there."""

    _group: "Group"  # whose ranks the other end uses; from `run` on

    def __init__(self, plan: Plan, where_signal: int, limit: "tuple[int, int] | None") -> None:
        self.plan = plan
        flags = process.interpreter_flags() if plan.kind != "executable" else ["-S", "-E", "-s"]
        self._spawn("local.fork_server", flags, plan.folder, plan.environment, _named(plan.arguments))
        self._send(("program", {**plan.message(where_signal), "descriptor_limit": limit}))

    def _spawn(
        self,
        module: str,
        flags: "list[str]",
        folder: "str | None",
        environment: "dict[str, str]",
        kept: "Sequence[int]" = (),
    ) -> None:
        self._wire, self.pid = spawn(module, flags, folder, environment, kept)
        self.unanswered = 0  # nodes requested whose start is not reported yet
        self.stays = False  # it waits for more work when all nodes have ended
        self.asked = 0  # the number of its nodes requested so far
        self.ready = False  # it has imported its modules
        self.gone = False  # it has ended, or announced its end
        self.ended = False
        self.signalled = False  # it has handed a signal on that asks its nodes to end
        self.status = 0

    def fileno(self) -> int:
        return self._wire.fileno()

    def place(self, plans: "list[Plan]") -> None:
        """Take over the nodes that it is to start next, of the same programs."""
        (self.plan,) = plans
        self.asked = 0

    @property
    def plans(self) -> "list[Plan]":
        """The programs whose nodes it starts."""
        return [self.plan]

    @property
    def indices(self) -> "Sequence[int]":
        """The nodes that it starts."""
        return self.plan.indices

    @property
    def host(self) -> "Host | None":
        """The machine of its nodes; None: this one."""
        return None

    def run(
        self,
        groups: "list[Group]",
        reports: "list[int]",
        where: int,
        cpus: "list[tuple[int, ...]] | None",
        stats: bool,
    ) -> None:
        """Describe the run that nodes are about to join. `reports`: of each group. `cpus`: of nodes, in turn.

        `stats`: times of nodes are needed when they end.
        """
        group, report = next(
            pair for pair in zip(groups, reports, strict=True) if pair[0].number == self.plan.group
        )
        self._group = group
        boxes = {rank: group.box(rank) for rank in map(group.rank, self.plan.indices)}
        needed = sorted(set(boxes.values()))  # other boxes may be on other machines
        segments = [group.segments[box] for box in needed]
        about = {
            "nodes": self.plan.nodes,
            "size": group.size,
            "group": group.number,
            "places": {rank: needed.index(box) for rank, box in boxes.items()},
            "stats": stats,
            "stays": self.stays,
            "debug": {
                group.rank(index): {**self.plan.debug, "terminal": index in self.plan.in_panes}
                for index in self.plan.debugged
            },
            "cpus": [cpus[index % len(cpus)] for index in group.indices] if cpus else None,
        }
        self._send(("run", about), (report, where))
        for at in range(0, len(segments), MOST_DESCRIPTORS):
            some = segments[at : at + MOST_DESCRIPTORS]
            same = [(segment.device, segment.inode) for segment in some]
            self._send(("segments", same), tuple(segment.fd for segment in some))

    def batch(self) -> "Sequence[int]":
        """Return the indices of the nodes to request now; empty if all were, or if too many are unanswered."""
        room = self.unanswered + BATCH <= _IN_FLIGHT and not self.ended
        return self.indices[self.asked : self.asked + BATCH if room else self.asked]

    def start(self, indices: "Sequence[int]", streams: "list[int]") -> None:
        """Request a batch of nodes; `streams` holds stdin, stdout and stderr of each.

        The answers are messages: started and unstarted.
        """
        self.asked += len(indices)
        self.unanswered += len(indices)
        self._send(("nodes", [self._group.rank(index) for index in indices]), tuple(streams))

    def end(self) -> None:
        """Mark the end of requests for nodes."""
        self._send(("end",))

    def signal(self, number: int, spared: "int | None" = None) -> None:
        """Signal the process groups of all running nodes but one."""
        rank = self._group.rank(spared) if spared is not None and spared in self.indices else None
        self._send(("signal", int(number), rank))  # `marshal` has no enums

    def poke(self, index: int, number: int) -> None:
        """Signal one node's process only."""
        self._send(("poke", self._group.rank(index), number))

    def stop(self) -> None:
        """Stop the fork server itself, as Ctrl-Z does, until `go_on`."""
        if not self.ended:
            process.tell(self.pid, _signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue the fork server, in case it was stopped: no other process can end the nodes."""
        if not self.ended:
            process.tell(self.pid, _signal.SIGCONT)

    def kill(self) -> None:
        """End the fork server itself, for when it does not read the socket because it still imports."""
        if not self.ended:
            process.tell(self.pid, _signal.SIGKILL)  # our child and not reaped: the number is its own

    def close(self) -> None:
        """Hang up: the fork server ends its nodes, and itself."""
        self._wire.close()

    def has_news(self, seconds: float) -> bool:
        """Whether `receive` has a message within that many seconds."""
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return bool(poll.poll(max(0.0, seconds) * 1000))

    def receive(self) -> "tuple | None":
        """Return the next message; None when the fork server has ended, and `status` is its wait status then."""
        message = None if self.ended else self._wire.receive()
        if message is None:
            self.wait()
            return None
        verb, *rest = message[0]
        if verb in ("started", "unstarted"):
            self.unanswered -= len(rest[0])
            rest[0] = [self._group.index(rank) for rank in rest[0]]
        elif verb == "exited":
            rest[0] = self._group.index(rest[0])
        elif verb == "signalled":
            self.signalled = True
        return (verb, *rest)

    def wait(self) -> None:
        """Wait until the fork server has ended."""
        if not self.ended:
            self.ended = True
            self.status = process.reap(self.pid)

    def _send(self, message: tuple, descriptors: "tuple[int, ...]" = ()) -> None:
        if self.ended:
            return
        try:
            self._wire.send(message, descriptors)
        except ConnectionError:
            pass  # it has ended, and receive() will report that


def _named(arguments: "list[str]") -> "list[int]":
    """Return the descriptors that arguments name, as those of a shell's `<(command)` do: /dev/fd/63."""
    rests = [word.partition(start)[2] for word in arguments for start in ("/dev/fd/", "/proc/self/fd/")]
    return [int(rest) for rest in rests if rest.isascii() and rest.isdecimal()]
