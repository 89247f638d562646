# SPDX-License-Identifier: MIT
"""What a server and an agent do, in processes of their own (see carriers): Python lets strangers wait and connections
be made; the C core moves frames, in a thread that never takes the GIL.
"""

import _signal
import _thread
import os

from spcomm.launch.loop import Loop
from spcomm.launch.wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

_AGAIN_S = (0.0, 0.01, 0.05, 0.2, 1.0)  # between attempts to connect; the last one repeats


def become(name: str, work: "Callable[[], None]", wire: Wire, kept: "list[int]", launcher: int) -> None:
    """In the forked process, with all signals blocked: do that, and end. Does not return."""
    code = 125
    try:
        _settle(name, kept, launcher)
        work()
        code = 0
    except BaseException as error:
        _complain(wire, error)
    finally:
        os._exit(code)


def _settle(name: str, kept: "list[int]", launcher: int) -> None:
    """Keep nothing of the launcher's but what is needed: not its sockets, whose ends others wait for."""
    from spcomm._core import net

    net.die_with_parent(_signal.SIGKILL)
    if os.getppid() != launcher:
        os._exit(0)
    os.setpgid(0, 0)  # Ctrl-C is for the launcher
    _signal.set_wakeup_fd(-1)
    for number in (_signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGTSTP):
        _signal.signal(number, _signal.SIG_DFL)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    before = 2
    for fd in sorted(kept):
        net.close_range(before + 1, fd - 1)
        before = fd
    net.close_range(before + 1, 2**31 - 1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    net.rename(name)


def _complain(wire: Wire, error: BaseException) -> None:
    from spcomm._core.errors import SpcommError

    if isinstance(error, SpcommError):
        message = ("failed", str(error))
    else:
        import traceback

        message = ("broken", "".join(traceback.format_exception(error)))
    try:
        wire.send(message)
    except OSError:
        pass


class Runner:
    """Runs something in a thread. Its descriptor is readable when that is over."""

    def __init__(self, work: "Callable[[], object]") -> None:
        self.over = False
        self._error: BaseException | None = None
        self._read, self._write = os.pipe()
        _thread.start_new_thread(self._run, (work,))

    def fileno(self) -> int:
        return self._read

    def _run(self, work: "Callable[[], object]") -> None:
        try:
            work()
        except BaseException as error:
            self._error = error
        self.over = True
        os.write(self._write, b".")

    def result(self) -> None:
        """Raises what it raised."""
        if self._error is not None:
            raise self._error


def serve(wire: Wire, listener: "_socket.socket", secret: bytes, job: int, places: "list[int]") -> None:
    """The server of one job: until all of its boxes have ended."""
    from spcomm._core import net
    from spcomm.launch.handshake import Gate

    loop = Loop()
    server = net.Server()
    server.add_job(job, places)
    gate = Gate(loop, listener, {job: secret}, server.adopt)
    gate.open()
    _until_over(loop, wire, Runner(server.run))
    if server.failure:
        from spcomm._core.errors import SpcommError

        raise SpcommError(server.failure)


def carry(wire: Wire, address: "tuple[str, int]", secret: bytes, job: int, box: int, segment: int) -> None:
    """The agent of a box: until all nodes of the run have ended, and what they sent has been carried."""
    from spcomm._core import net

    loop = Loop()
    agent = net.Agent(segment, box, job)
    Connector(loop, agent, lambda: _connect(address, secret, job, box)).start()
    _until_over(loop, wire, Runner(agent.run))


def _until_over(loop: Loop, wire: Wire, runner: Runner) -> None:
    loop.add(wire.fileno(), lambda: os._exit(0))  # the launcher never says anything: it is gone
    loop.add(runner.fileno(), lambda: None)
    while not runner.over:
        loop.turn()
    runner.result()


def _connect(address: "tuple[str, int]", secret: bytes, job: int, box: int) -> int:
    """An authenticated connection, for whoever closes it. `OSError`: there is none now."""
    from spcomm.launch import handshake

    return handshake.enter(address, secret, job, box)
