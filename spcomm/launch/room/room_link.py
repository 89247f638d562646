# SPDX-License-Identifier: MIT
"""Room links: messages between a server and its members, runs and boxes, over connections that break.

A link is used as `Frames` are, and registers its descriptors in the loop by itself. `control_link` keeps the messages
whole; here are the connections, each of which is made, proved by the code and encrypted anew. The first messages of a
connection are not part of the link:

================================  ==================================================================================
`hello`, purpose, versions,       a new link: `of` holds its number, made at random, and its ticket. The server sends
about, `of`                       `linked` and the link timeout in seconds, or `refused` and the reason
`resume`, number, proof,          the same link, over this connection. The server sends `resumed`, proof, received and
received                          the link timeout, or `unknown`; a `hello` may follow `unknown`
`gone`, number, proof             the end of a link whose process was killed, as a child of it reports. The server
                                  sends `known`
================================  ==================================================================================

The ticket travels once, encrypted. Each end that resumes, or reports the end, shows an HMAC by the ticket of the
handshake and of the certificate. So neither a stranger nor another member, which knows the code, can take over a link,
and no proof is valid for another connection.
"""

import _thread
import hmac
import os
import time
from collections import deque
from typing import TYPE_CHECKING

from spcomm.launch.base import nothing
from spcomm.launch.base.loop import Loop
from spcomm.launch.base.wire import NONSENSE
from spcomm.launch.remote import versions
from spcomm.launch.remote.control_link import ControlLink, LinkError
from spcomm.launch.remote.framing import FrameError, encode, take_frame
from spcomm.launch.room import connect
from spcomm.launch.room.connect import CONNECT_S, EntryError
from spcomm.launch.room.prompt import spelt
from spcomm.launch.room.room_framing import RoomFrames

if TYPE_CHECKING:
    from collections.abc import Callable

_PIECE = 1 << 17  # bytes encrypted at a time
_AGAIN_S = (0.0, 0.05, 0.2, 1.0)  # between attempts to connect; the last one repeats
_ATTEMPTS_MOST = 12  # at first, of the ways to boxes
_REFUSED_S = 1.0  # in which nothing listens, after which a server that has closed the connection is gone
_TICKET_BYTES = 32


def proof(ticket: bytes, role: str, binding: bytes) -> str:
    """Return the proof for a role, "client", "server" or "gone", that an end shows over a connection."""
    return hmac.digest(ticket, f"spcomm resume {role}".encode() + binding, "sha256").hex()


class RoomLink:
    """One end; by itself that of a server, to which others connect."""

    reading = writing = -1  # no other module needs its descriptors

    def __init__(self, loop: Loop, timeout_s: float) -> None:
        self._loop = loop
        self._core = ControlLink(timeout_s, time.monotonic())
        self._frames: RoomFrames | None = None
        self._messages: deque[bytes] = deque()
        self._call: Callable[[], None] = nothing
        self.is_gone = False  # it is over, and not because the other end has finished
        self.broken = False  # it makes no more calls to its owner

    # As of `Frames`

    @property
    def kept(self) -> int:
        """Bytes that have not arrived."""
        return self._core.kept

    def send(self, message: list, data: "bytes | memoryview" = b"") -> None:
        self._core.send(encode(message, data))
        self.flush()

    def receive(self) -> "list[tuple[list, bytes]] | None":
        """Messages that have come; None at the end. `FrameError`: a malformed message."""
        found = []
        while self._messages:
            came = bytearray(self._messages.popleft())
            frame = take_frame(came)
            if frame is None or came:
                raise FrameError("sent a malformed message")
            found.append(frame)
        return found if found or not self._has_ended else None

    def listen(self, loop: Loop, call: "Callable[[], None]") -> None:
        """Call when there are messages, or the end."""
        self._call = call
        self._loop = loop
        self._core.hold(False)
        self.flush()
        self._announce()

    def pause(self, _loop: Loop) -> None:
        """Have the other end send no more than is under way, until `listen`."""
        self.hold(True)

    def hold(self, do: bool) -> None:
        """Pause as `pause` does, or go on again."""
        if do != self._core.is_held:
            self._core.hold(do)
            self.flush()

    def flush(self) -> bool:
        """Write as much as the socket takes now. The loop writes the rest later."""
        frames = self._frames
        while frames is not None and frames is self._frames:
            if not frames.flush():
                self._loop.add(frames.writing, self._flush_later, write=True)
                return True
            data = b"" if frames.broken else self._core.output(_PIECE)
            if data:
                frames.write(data)
                continue
            self._loop.remove(frames.writing)
            if frames.broken:
                self._lose(frames.was_closed)
            break
        return True

    def _flush_later(self) -> None:
        self.flush()

    # The end

    @property
    def _has_ended(self) -> bool:
        return self._core.is_over or self.is_gone

    @property
    def has_arrived(self) -> bool:
        """Whether the link needs no more work: the other end has everything, or is gone."""
        return self._core.has_arrived or self._has_ended

    def say_last(self) -> None:
        """Mark the end: no message follows."""
        self._core.finish()
        self.flush()

    def finish(self, patience_s: "float | None" = None) -> None:
        """Wait until the other end has all that was sent, and end the link. None: as long as a link may take."""
        self.say_last()
        loop, late = Loop(), []
        if patience_s is not None:
            loop.at("patience", patience_s, lambda: late.append(True))
        self.listen(loop, nothing)
        self.hold(True)  # the owner ignores later messages
        while not (self.has_arrived or self.broken or late):
            loop.turn()
        self.close()
        loop.close()

    def close(self) -> None:
        """Give up the link without a message."""
        self.is_gone = True
        self._call = nothing
        self._drop()

    def _end(self) -> None:
        if not self.is_gone:
            self.is_gone = True
            self._drop()
            self._announce()

    def _announce(self) -> None:
        """Call once for messages, and once for the end."""
        if self._messages:
            self._call()
        if self._has_ended and not self._messages:
            call, self._call = self._call, nothing
            call()

    # Connections

    @property
    def is_up(self) -> bool:
        return self._frames is not None

    def attach(self, frames: RoomFrames, received: int) -> None:
        """Go on over this connection; its other end has received so many messages. `LinkError`: it cannot be."""
        self._drop()
        self._core.attach(received, time.monotonic())
        self._frames = frames
        self._loop.add(frames.reading, self._hear)
        self._take(frames.rest())

    def _hear(self) -> None:
        frames = self._frames
        try:
            data = frames.read() if frames is not None else b""
        except FrameError:
            data = None
        if data is None:
            self._lose(frames is not None and frames.was_closed)
        else:
            self._take(data)

    def _take(self, data: bytes) -> None:
        try:
            self._core.feed(data, time.monotonic(), self._messages)
        except LinkError:
            self._lose()
        self.flush()  # acknowledgements, also of the end, before its owner learns of it
        self._announce()

    def _drop(self) -> None:
        """Close the connection, if there is one."""
        frames, self._frames = self._frames, None
        self._core.detach()
        if frames is not None:
            self._loop.remove(frames.reading)
            self._loop.remove(frames.writing)
            frames.close()

    def _lose(self, was_closed: bool = False) -> None:
        """The connection has broken. `was_closed`: the system at the other end has closed or reset it."""
        self._drop()

    def beat(self, lapses: bool = True) -> None:
        """Thirty times in each link timeout. `lapses`: not if the other end is known to live, though it is silent."""
        now = time.monotonic()
        self._core.tick(now)
        if self._frames is not None and self._core.is_silent(now):
            self._lose()
        if lapses and self._core.is_dead(now):
            self._lapse()
        self.flush()

    def _lapse(self) -> None:
        """The other end was silent for the whole timeout."""
        self._end()

    @property
    def timeout_s(self) -> float:
        return self._core.timeout_s

    @property
    def beat_s(self) -> float:
        return self._core.beat_s

    @property
    def acknowledging(self) -> int:
        return self._core.acknowledging


class ClientLink(RoomLink):
    """The end that connects, at first and whenever the connection has broken.

    A link that `renews` outlives even its timeout: if the server does not know it any more, a new link replaces it,
    shows the old one's ticket and begins with another welcome. The link ends if the machine of the server refuses
    connections for a whole timeout. Another link, which a new server would not know, ends after a second of that if the
    machine of the server had closed the connection: then the server's process is gone. A cable that was unplugged
    closes nothing, and machines that cannot be reached refuse nothing.
    """

    def __init__(
        self,
        loop: Loop,
        place: "tuple[str, int]",
        key: bytes,
        purpose: str,
        about: dict,
        renews: bool = False,
    ) -> None:
        """Connects, which takes some seconds at most. Raises `EntryError`."""
        super().__init__(loop, CONNECT_S)
        self._place, self._key = place, key
        self._purpose, self._about, self._renews = purpose, about, renews
        self._number, self._ticket = os.urandom(16).hex(), os.urandom(_TICKET_BYTES)
        self._was: tuple[str, bytes] | None = None  # the link that it replaces
        self._is_asked_for = False  # the server may know it
        self._is_new = True  # it was never attached
        self._attempts = 0  # since there was a connection
        self._was_closed = False  # the last connection, by the server's machine
        self._nobody_since: float | None = None  # since then its machine refuses connections
        self._dialling = -1  # readable when a thread has finished that
        self._result: tuple[RoomFrames, int, float] | Exception | None = None
        self.why = f"the server at {spelt(place)} has ended, or the network between has"
        self._attach_first(loop)

    def _attach_first(self, loop: Loop) -> None:
        while True:
            try:
                found = self._dial()
                break
            except EntryError as error:
                # A command that a user has typed reports an error soon; a run in progress has more patience.
                is_typed = self._purpose in ("join", "run", "meet")
                lasting = is_typed and not isinstance(error, connect.ClosedError)
                most = len(_AGAIN_S) if is_typed else _ATTEMPTS_MOST
                if lasting or isinstance(error, connect.FinalError) or self._attempts >= most:
                    raise
            time.sleep(_AGAIN_S[min(self._attempts, len(_AGAIN_S) - 1)])
            self._attempts += 1
        self.peer = found[0].peer
        self._attach_dialled(*found)

    def listen(self, loop: Loop, call: "Callable[[], None]") -> None:
        """Listen as before, and move to that loop."""
        if loop is not self._loop:
            self._leave_loop()
        self._loop = loop
        if self._frames is not None:
            loop.add(self._frames.reading, self._hear)
        elif self._dialling >= 0:
            loop.add(self._dialling, self._dialled)
        elif not self._has_ended and not loop.waits(self._name("dial")):
            self._again()
        if not loop.waits(self._name("beat")):
            loop.at(self._name("beat"), self.beat_s, self.beat)
        super().listen(loop, call)

    def _leave_loop(self) -> None:
        self._loop.forget(self._name("beat"))
        self._loop.forget(self._name("dial"))
        if self._frames is not None:
            self._loop.remove(self._frames.reading)
            self._loop.remove(self._frames.writing)
        if self._dialling >= 0:
            self._loop.remove(self._dialling)

    def _name(self, what: str) -> str:
        return f"{what} {id(self)}"

    def beat(self, lapses: bool = True) -> None:
        super().beat(lapses)
        if not self.is_gone:
            self._loop.at(self._name("beat"), self.beat_s, self.beat)

    def close(self) -> None:
        super().close()
        self._leave_loop()

    def _attach_dialled(self, frames: RoomFrames, received: int, timeout_s: float) -> None:
        if self._is_new:
            self._core = ControlLink(timeout_s, time.monotonic())
        self._attempts, self._is_new, self._nobody_since = 0, False, None
        self.attach(frames, received)

    def _lose(self, was_closed: bool = False) -> None:
        was_up = self._frames is not None
        super()._lose()
        if was_up and not self._has_ended:
            self._was_closed = was_closed
            self._again()

    def _lapse(self) -> None:
        if not self._renews or self._core.has_finished:
            super()._lapse()

    # Attempts to connect, each in a thread

    def _again(self) -> None:
        pause_s = min(_AGAIN_S[min(self._attempts, len(_AGAIN_S) - 1)], self.beat_s)
        self._attempts += 1
        self._loop.at(self._name("dial"), pause_s, self._start_dialling)

    def _start_dialling(self) -> None:
        if self._has_ended or self._dialling >= 0:
            return
        self._dialling, write = os.pipe()
        try:
            _thread.start_new_thread(self._dial_apart, (write,))
        except RuntimeError as error:  # there can be no more threads
            self._result = error
            os.close(write)
        self._loop.add(self._dialling, self._dialled)

    def _dial_apart(self, write: int) -> None:
        try:
            self._result = self._dial()
        except Exception as error:  # any error leads to another attempt
            self._result = error
        os.close(write)

    def _dialled(self) -> None:
        self._loop.remove(self._dialling)
        os.close(self._dialling)
        self._dialling = -1
        result, self._result = self._result, None
        if isinstance(result, tuple):
            if self._has_ended:
                result[0].close()
                return
            try:
                self._attach_dialled(*result)
                return
            except LinkError:
                result[0].close()
        elif isinstance(result, connect.FinalError) or self._is_nobody_there(result):
            if not isinstance(result, connect.NobodyError):
                self.why = str(result)
            elif self._is_process_gone:
                self.why = (
                    f"the server at {spelt(self._place)} has ended: nothing listens at its port any more"
                )
            self._end()
            return
        self._again()

    def _is_nobody_there(self, error: "Exception | None") -> bool:
        """Whether the machine of the server has refused connections for so long that there is no server any more."""
        if not isinstance(error, (connect.NobodyError, connect.RefusedError)):
            self._nobody_since = None
            # A connection made while the server's process ends is closed, too, and shows no other network.
            self._was_closed = self._was_closed and isinstance(error, connect.ClosedError)
            return False
        now = time.monotonic()
        if self._nobody_since is None:
            self._nobody_since = now
        patience_s = min(_REFUSED_S, self._core.timeout_s) if self._is_process_gone else self._core.timeout_s
        return now - self._nobody_since >= patience_s

    @property
    def _is_process_gone(self) -> bool:
        """Whether refused connections show that the process has ended, and not another network or a restart."""
        return self._was_closed and not self._renews

    def report_gone(self) -> None:
        """Report, in a child of the link's process, that this was killed; the server cannot see it. Takes some seconds
        at most, and succeeds only if the server can be reached."""
        try:
            frames = connect.enter_once(self._place, self._key)
            connect.ask(
                frames, ["gone", self._number, proof(self._ticket, "gone", frames.binding)], self._place
            )
        except EntryError:
            pass  # the server notices by the silence

    def _dial(self) -> "tuple[RoomFrames, int, float]":
        """Connect, and resume the link, or open it. Raises `EntryError`.

        Returns the connection, the number of messages that the other end has received, and the link timeout.
        """
        frames = connect.enter_once(self._place, self._key)
        try:
            if self._is_asked_for:
                received = 0 if self._is_new else self.acknowledging
                shown = proof(self._ticket, "client", frames.binding)
                reply = connect.ask(frames, ["resume", self._number, shown, received], self._place)
                wanted = proof(self._ticket, "server", frames.binding)
                if reply[0] == "resumed" and hmac.compare_digest(str(reply[1]), wanted):
                    return frames, int(reply[2]), float(reply[3])
                if reply[0] != "unknown":
                    raise connect.ClosedError(f"what listens at {spelt(self._place)} is another server")
                if not self._is_new:
                    self._renew()
            of = {"link": self._number, "ticket": self._ticket.hex()}
            if self._was is not None:
                of["was"] = [self._was[0], proof(self._was[1], "client", frames.binding)]
            self._is_asked_for = True
            reply = connect.ask(
                frames, ["hello", self._purpose, versions.mine(), self._about, of], self._place
            )
            return frames, 0, float(reply[1])
        except NONSENSE:
            frames.close()
            raise connect.ClosedError(
                f"what listens at {spelt(self._place)} sent a malformed message"
            ) from None
        except BaseException:
            frames.close()
            raise

    def _renew(self) -> None:
        if not self._renews:
            raise connect.FinalError(
                f"the server at {spelt(self._place)} does not know this connection any more: it was restarted, or the "
                "connection was broken for too long"
            )
        self._was = self._number, self._ticket
        self._number, self._ticket = os.urandom(16).hex(), os.urandom(_TICKET_BYTES)
        self._is_new = True

    # For owners that have no loop of their own yet

    def next_message(self, turn: "Callable[[], None]") -> list:
        """The next message; `turn` turns the loop. Raises `EntryError` at the end."""
        while not self._messages:
            if self._has_ended:
                raise EntryError(self.why)
            turn()
        frame = take_frame(bytearray(self._messages.popleft()))
        if frame is None:
            raise EntryError(f"what listens at {spelt(self._place)} sent a malformed message")
        return frame[0]
