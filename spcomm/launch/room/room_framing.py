# SPDX-License-Identifier: MIT
"""Frames over a connection of a room. TLS encrypts them where they cross a network; a record that was changed, left
out, repeated or reordered ends the connection."""

import os
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

from spcomm.launch.remote.framing import FrameError, Frames, take_frame

if TYPE_CHECKING:
    import socket

    from spcomm.launch.remote.tls import Session


class RoomFrames(Frames):
    """One end."""

    def __init__(self, sock: "socket.socket", session: "Session | None", binding: bytes = b"") -> None:
        """Takes the socket. `session`: of TLS; None: the connection does not leave this machine.

        `binding`: bytes that both ends of this connection know, and that differ for every other connection.
        """
        self.peer = sock.getpeername()[:2]
        # Two, since an event loop knows a descriptor by one purpose. If this fails, the socket is still its owner's.
        writing = os.dup(sock.fileno())
        super().__init__(sock.detach(), writing, True)
        self._session = session
        self.binding = binding
        with suppress(FrameError):  # which the next read finds again
            self._came += self.unwrap(b"")  # what came with the end of the handshake

    def message(self) -> "list | None":
        """One message, without waiting; empty: it has not come yet. None at the end. Later bytes stay for `rest`."""
        data = self.read()
        if data is None:
            return None
        self._came += data
        frame = take_frame(self._came)
        return frame[0] if frame is not None else []

    def rest(self) -> bytes:
        """Return the bytes that came behind the messages, once."""
        rest = bytes(self._came)
        self._came.clear()
        return rest

    def wrap(self, frame: bytes) -> bytes:
        return frame if self._session is None else self._session.encrypt(frame)

    def unwrap(self, data: bytes) -> bytes:
        if self._session is None:
            return data
        try:
            return self._session.decrypt(data)
        except ssl.SSLError:
            raise FrameError("sent a message that was changed on the way") from None

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)
