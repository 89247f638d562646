# SPDX-License-Identifier: MIT
"""Page of `--watch=browser`: a process that reads the timeline as it grows and serves it (`watch_server`).

The launcher forks it, and tells it four times a second what each node does. Neither waits for the other: it answers
when it is ready for the next look, which the launcher does not take before. It ends when the launcher does, or has
given it the trace and open pages have taken that. The token is handed over by the fork, so it is on no command line and
in no environment; a browser gets it in a file that only this user can read, and that is gone when it was used.
"""

import os
import select
import signal
import socket
import time
from typing import TYPE_CHECKING

from spcomm.launch.base import loopback, wire
from spcomm.launch.base.process import signal_name
from spcomm.launch.base.usage import UsageError, complain
from spcomm.launch.supervise.watch import states_text

if TYPE_CHECKING:
    import asyncio
    from typing import Any

    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.supervise.watch import Row
    from spcomm.launch.supervise.watch_server import Server

_SHARE = 19  # a look is followed by a pause of so many times its duration
_PATIENCE_S = 5.0  # for the process to take its last message
_QUICK_S = 1.0  # an end that takes longer is worth a sentence
_CLOSING_S = 1.0  # for it to end when the launcher has nothing more to say
_NAME = "spcomm-watch"
_READY = b"+"  # the process would read the next look
_HELD_UP = {  # the end of the run, by something that the process tells with a letter
    b"b": "waits up to 5 s for the page that the browser was told to open",
    b"p": "is giving the whole timeline to the page that is open",
}


class WatchPage:
    """The launcher's end of it."""

    def __init__(self, group: "Group", program: str) -> None:
        """Raises `OSError` if there can be no socket that listens on 127.0.0.1, `UsageError` if none reaches it."""
        from spcomm.launch.remote import transport_main

        self._size = group.size
        self.last: tuple[list[Row], float] = [], 0.0  # when all nodes had ended
        self._is_gone = self._is_finished = False
        self._is_ready = True
        self._holds_up = b""  # a key of _HELD_UP
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind((loopback.LOOPBACK, 0))
        if not_reached := loopback.trouble(listener.getsockname()):
            listener.close()
            raise UsageError(f"spcomm run: --watch=browser: {not_reached}")
        listener.listen(64)
        token = os.urandom(32).hex()
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/?token={token}"
        ours, theirs = wire.opened(socket.socketpair, socket.AF_UNIX, socket.SOCK_STREAM)
        for sock in (listener, ours, theirs):
            os.set_inheritable(sock.fileno(), False)
        here = {rank: segment.fd for rank in range(group.size) if (segment := group.segment(rank)).fd >= 0}
        places = list(group.places) or [0] * group.size
        about = {"program": program, "here": here, "places": places, "token": token, "url": self.url}
        fds = (listener.fileno(), theirs.fileno())
        mask = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        try:
            self._pid = os.fork()
            if self._pid == 0:
                kept = [*fds, *here.values()]
                transport_main.become(_NAME, lambda: _main(*fds, about), wire.Wire(theirs), kept, 0)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        listener.close()
        ours.setblocking(False)
        self._wire = ours
        self._left = b""  # of a message that did not fit

    def show(self, rows: "list[Row]", seconds: float) -> None:
        """Tell what each node does, unless the process has not come to read yet."""
        if not self._left and self._is_waiting():
            self._is_ready = False
            self._left = wire.encoded(("look", self._state(rows, seconds), _ended(rows)))
        self._send()

    def _state(self, rows: "list[Row]", seconds: float) -> "dict[str, Any]":
        return {
            "seconds": seconds,
            "states": states_text(rows),
            "rows": [[row.name, row.state, row.seconds, row.call, row.place, *row.rates] for row in rows],
        }

    def _is_waiting(self) -> bool:
        try:
            answer = b"" if self._is_gone else self._wire.recv(1)
            self._is_ready = self._is_ready or answer == _READY
            self._is_gone = not answer
            self._holds_up = answer if answer in _HELD_UP else self._holds_up
        except BlockingIOError:
            pass
        except OSError:
            self._is_gone = True
        return self._is_ready and not self._is_gone

    def _send(self) -> None:
        while self._left and not self._is_gone:
            try:
                self._left = self._left[self._wire.send(self._left, wire.NOSIGNAL) :]
            except BlockingIOError:
                return
            except OSError:
                self._is_gone = True

    def finish(self, path: str, saved: str, code: int) -> None:
        """Give the pages that are open the trace in the file `path`, which `saved` names if it stays; then end."""
        rows, seconds = self.last
        state = {**self._state(rows, seconds), "is_over": True, "code": code, "saved": saved}
        self._left += wire.encoded(("end", state, _ended(rows), path))
        poll = select.poll()
        poll.register(self._wire.fileno(), select.POLLOUT)
        end_s = time.monotonic() + _PATIENCE_S
        while self._left and not self._is_gone and time.monotonic() < end_s:
            self._wait(poll)
            self._send()
        if self._left:
            return
        self._is_finished = True
        poll.modify(self._wire.fileno(), select.POLLIN)
        said_s = time.monotonic() + _QUICK_S
        while not self._is_gone:
            self._wait(poll)
            self._is_waiting()
            if said_s and self._holds_up and time.monotonic() > said_s:
                said_s = 0.0
                complain(f"spcomm: --watch=browser {_HELD_UP[self._holds_up]}; Ctrl-C ends that")

    def _wait(self, poll: "select.poll") -> None:
        os.kill(self._pid, signal.SIGCONT)  # the end of the run waits for it, so it must not be stopped
        poll.poll(100)

    def close(self) -> None:
        """End the process. If it had ended by itself before its time, say so."""
        is_early = self._is_gone and not self._is_finished
        if not self._is_gone:
            self._wire.shutdown(socket.SHUT_WR)
            poll = select.poll()
            poll.register(self._wire.fileno(), select.POLLIN)
            end_s = time.monotonic() + _CLOSING_S
            while not self._is_gone and time.monotonic() < end_s:
                poll.poll(100)
                self._is_waiting()
        if not self._is_gone:
            os.kill(self._pid, signal.SIGKILL)  # our child and not reaped: the number is its own
        status = os.waitpid(self._pid, 0)[1]
        self._wire.close()
        if is_early:
            how = f"by {signal_name(status & 0x7F)}" if status & 0x7F else f"with code {status >> 8}"
            complain(f"spcomm: warning: the page of --watch=browser has ended early, {how}")


def _ended(rows: "list[Row]") -> "list[int]":
    from spcomm.launch.supervise.watch import ENDED

    return [row.index for row in rows if row.state == ENDED or row.state.endswith(")")]


# In the process that serves


def _main(listener: int, channel: int, about: "dict[str, Any]") -> None:
    import asyncio

    errors = os.dup(2)
    try:
        asyncio.new_event_loop().run_until_complete(_serve(listener, channel, about))
    except Exception:
        import traceback

        os.write(errors, traceback.format_exc().encode("utf-8", "backslashreplace"))
        raise


async def _serve(listener: int, channel: int, about: "dict[str, Any]") -> None:
    import asyncio
    import socket

    from spcomm.launch.supervise.watch_server import Guard, Server
    from spcomm.trace import page

    sock = socket.socket(fileno=listener)
    guard = Guard(sock.getsockname()[1], about["token"])
    elsewhere = [rank for rank in range(len(about["places"])) if rank not in about["here"]]
    server = Server(guard, page.live(about["program"], about["places"], elsewhere))
    await server.start(sock)
    reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=channel))
    link = _link_file(about["url"]) if _has_browser() else None
    guard.used = link.remove if link is not None else None
    opening = asyncio.create_task(asyncio.to_thread(link.open)) if link is not None else None
    try:
        await _follow(reader, writer, server, about, opening is not None)
    except (asyncio.IncompleteReadError, OSError):
        pass  # the launcher has ended
    finally:
        if link is not None:
            link.remove()


async def _follow(
    reader: "asyncio.StreamReader",
    writer: "asyncio.StreamWriter",
    server: "Server",
    about: "dict[str, Any]",
    is_opened: bool,
) -> None:
    """Read what the launcher tells, until the end of the run; then let pages take the trace."""
    import asyncio
    import marshal

    from spcomm.trace.live import Feed

    feed = Feed(about["here"], about["places"])
    server.pieces.texts = feed.texts
    while True:
        length = int.from_bytes(await reader.readexactly(wire.LENGTH_BYTES), "little")
        verb, state, ended, *rest = marshal.loads(await reader.readexactly(length))
        begun_s = time.monotonic()
        piece = feed.look(ended)
        took_s = time.monotonic() - begun_s
        if verb == "end":
            break
        server.pieces.add(state, piece)
        # The end of the run may come during the pause, and does not wait for it.
        asyncio.get_running_loop().call_later(_SHARE * took_s, writer.write, _READY)
    ending = asyncio.create_task(_end(writer, server, state, piece, rest[0], is_opened))
    leaving = asyncio.create_task(reader.read())  # the launcher says no more
    await asyncio.wait((ending, leaving), return_when=asyncio.FIRST_COMPLETED)
    if ending.done():
        ending.result()


async def _end(
    writer: "asyncio.StreamWriter",
    server: "Server",
    state: "dict[str, Any]",
    piece: "dict[str, Any] | None",
    path: str,
    is_opened: bool,
) -> None:
    import asyncio

    has_pages = server.has_pages
    if is_opened and not has_pages:
        writer.write(b"b")
        has_pages = await server.wait_for_page()
    if has_pages:
        writer.write(b"p")
        await server.end(state, piece, await asyncio.to_thread(_page_of, path))


def _page_of(path: str) -> "bytes | None":
    """Return the page of a trace; None: it cannot be read, and the launcher has said so."""
    from spcomm.trace import page, reader
    from spcomm.trace.errors import TraceError

    try:
        return page.page(reader.read(path)).encode()
    except TraceError:
        return None


def _has_browser() -> bool:
    """Whether somebody sits here: at a terminal, with a screen."""
    import sys

    has_screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(has_screen) and os.isatty(2)


def _link_file(url: str) -> "_LinkFile | None":
    """None: it cannot be written, and the user opens the printed link."""
    try:
        return _LinkFile(url)
    except OSError:
        return None


class _LinkFile:
    """A file that leads a browser to the link, which a command line would show to all users of the machine."""

    def __init__(self, url: str) -> None:
        import tempfile

        from spcomm.launch.supervise.watch_server import go_on

        number, self._path = tempfile.mkstemp(".html", "spcomm-")  # for this user only
        try:
            with open(number, "w") as file:
                file.write(go_on(url))
        except OSError:
            self.remove()
            raise

    def open(self) -> None:
        """Open a browser, if there is one."""
        import webbrowser

        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)  # browsers write there
        os.close(null)
        webbrowser.open(f"file://{self._path}")

    def remove(self) -> None:
        """Remove it: the link has been used, or serves no more."""
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            pass
