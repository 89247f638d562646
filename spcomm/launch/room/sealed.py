# SPDX-License-Identifier: MIT
"""Frames over a connection of a room. Each carries a MAC, of its number too: what is changed, left out, doubled or
played again on the way ends the connection. They can be read on the way."""

import hmac
import os

from spcomm.launch.frames import FrameError, Frames
from spcomm.launch.room import codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

_TAG = 16


class Sealed(Frames):
    """One end. `transcript`: what the handshake has signed; no other connection has the same."""

    def __init__(self, sock: "_socket.socket", secret: bytes, transcript: bytes, server: bool) -> None:
        """Takes the socket."""
        self.peer = sock.getpeername()[:2]
        fd = sock.detach()
        super().__init__(fd, os.dup(fd), True)  # two, since an event loop knows a descriptor by one purpose
        keys = [codes.derive(secret, f"from the {end}", transcript) for end in ("client", "server")]
        self._ours, self._theirs = keys[server], keys[not server]
        self._sent = self._got = 0
        self.tag_bytes = _TAG
        self._unread: list[list] = []

    def next_message(self) -> "list | None":
        """One message, without waiting; empty: it has not come yet. None at the end. Not together with `receive`."""
        if not self._unread:
            found = self.receive()
            if found is None:
                return None
            self._unread += [message for message, _data in found]
        return self._unread.pop(0) if self._unread else []

    @property
    def has_more(self) -> bool:
        """Whether `next_message` has one that was read before."""
        return bool(self._unread)

    def seal(self, frame: "bytes | bytearray") -> bytes:
        number, self._sent = self._sent, self._sent + 1
        return hmac.digest(self._ours, number.to_bytes(8, "little") + frame, "sha256")[:_TAG]

    def check(self, frame: "bytes | bytearray", tag: bytes) -> None:
        number, self._got = self._got, self._got + 1
        wanted = hmac.digest(self._theirs, number.to_bytes(8, "little") + frame, "sha256")[:_TAG]
        if not hmac.compare_digest(wanted, tag):
            raise FrameError("sends what somebody has changed on the way")

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)
