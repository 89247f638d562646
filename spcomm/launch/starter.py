# SPDX-License-Identifier: MIT
"""The launcher's end of the warm process: sends it nodes and signals, hears what becomes of them."""

import _signal
import os
import sys

from spcomm.launch.plan import Plan
from spcomm.launch.process import interpreter_flags
from spcomm.launch.wire import MOST_DESCRIPTORS, Wire

# Finds this package wherever it lies, and without looking into the current directory, where a student may
# well have a random.py. The warm process gives the program the sys.path[0] it has under plain Python.
_BOOTSTRAP = (
    "import sys\n"
    "if not sys.flags.safe_path: del sys.path[0]\n"
    "sys.path.insert(0, sys.argv[3])\n"
    "from spcomm.launch import warm\n"
    "del sys.path[0]\n"
    "warm.main()\n"
)
BATCH = MOST_DESCRIPTORS // 3  # nodes asked for in one message
_IN_FLIGHT = 2 * BATCH  # nodes asked for and not answered: descriptors on their way have a limit, too


class Starter:
    """The warm process as the launcher sees it."""

    def __init__(
        self, plan: Plan, preload: "list[str] | None", where_signal: int, limit: "tuple[int, int] | None"
    ) -> None:
        self._wire, theirs = Wire.pair()
        flags = interpreter_flags() if plan.kind != "executable" else ["-S", "-E", "-s"]
        package = os.path.dirname(sys.modules["spcomm"].__path__[0])
        arguments = [
            sys.executable,
            *flags,
            "-c",
            _BOOTSTRAP,
            str(theirs.fileno()),
            str(os.getpid()),
            package,
        ]
        os.set_inheritable(theirs.fileno(), True)
        self.pid = os.posix_spawn(sys.executable, arguments, _environment(), setpgroup=0)
        theirs.close()
        self._unanswered = 0
        self.ended = False
        self.status = 0
        self._send(("program", {**plan.message(preload, where_signal), "descriptor_limit": limit}))

    def fileno(self) -> int:
        return self._wire.fileno()

    def run(self, size: int, segment: object, report: int, where: int, options: dict) -> None:
        """Describe the run that nodes are about to join."""
        about = {"size": size, "device": segment.device, "inode": segment.inode, "options": options}
        self._send(("run", about), (segment.fd, report, where))

    def room(self) -> bool:
        """Whether another batch of nodes may be asked for now."""
        return self._unanswered + BATCH <= _IN_FLIGHT and not self.ended

    def nodes(self, ranks: "list[int]", streams: "list[int]") -> None:
        """Ask for at most BATCH nodes; `streams` holds stdin, stdout and stderr of each.

        The answers are messages: started and unstarted.
        """
        self._unanswered += len(ranks)
        self._send(("nodes", ranks), tuple(streams))

    def no_more(self) -> None:
        """No more nodes will be asked for."""
        self._send(("end",))

    def signal(self, number: int, spared: "int | None" = None) -> None:
        """Signal the process groups of all running nodes but one."""
        self._send(("signal", number, spared))

    def poke(self, rank: int, number: int) -> None:
        """Signal one node's process only."""
        self._send(("poke", rank, number))

    def go_on(self) -> None:
        """Continue the warm process, should someone have stopped it: nobody else can end the nodes."""
        if not self.ended:
            os.kill(self.pid, _signal.SIGCONT)

    def kill(self) -> None:
        """End the warm process itself: for when it does not listen, because it still imports."""
        if not self.ended:
            os.kill(self.pid, _signal.SIGKILL)  # our child and not reaped: the number is its own

    def receive(self) -> "tuple | None":
        """The next message; None when the warm process has ended, and `status` is its wait status then."""
        message = None if self.ended else self._wire.receive()
        if message is None:
            self.wait()
            return None
        if message[0][0] in ("started", "unstarted"):
            self._unanswered -= len(message[0][1])
        return message[0]

    def wait(self) -> None:
        """Until the warm process has ended."""
        if not self.ended:
            self.ended = True
            self.status = os.waitpid(self.pid, 0)[1]

    def _send(self, message: tuple, descriptors: "tuple[int, ...]" = ()) -> None:
        if self.ended:
            return
        try:
            self._wire.send(message, descriptors)
        except ConnectionError:
            pass  # it has ended: receive() will tell


def _environment() -> "dict[str, str]":
    """The launcher's own, and what nodes have to agree on or share the cores for."""
    environment = dict(os.environ)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        environment.setdefault(name, "1")
    if environment.get("PYTHONHASHSEED", "random") in ("", "random"):
        environment["PYTHONHASHSEED"] = str(int.from_bytes(os.urandom(4), "little") or 1)
    return environment
