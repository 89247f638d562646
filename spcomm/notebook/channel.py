# SPDX-License-Identifier: MIT
"""The caller's end of the socket through which a node gets its work and gives back its results.

Messages have the format of `launch.base.wire`, as the node's have. This end never blocks: a node that is stopped,
or computes and does not read, must not keep the caller from hearing a Ctrl-C.
"""

import _socket
import marshal
import os

from spcomm.launch.base.wire import LENGTH_BYTES, NOSIGNAL, Wire, encoded_descriptor

_READ = 1 << 20


class Channel:
    """One node's socket, seen from the caller."""

    def __init__(self) -> None:
        self._sock, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._sock.setblocking(False)
        os.set_inheritable(self._sock.fileno(), False)
        self.theirs = theirs.detach()
        os.set_inheritable(self.theirs, False)
        self._queue: list[tuple[memoryview, bytes]] = []  # data to send, and descriptors as bytes
        self._data = bytearray()
        self.ended = False  # the node has closed its end

    def fileno(self) -> int:
        return self._sock.fileno()

    def close_theirs(self) -> None:
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1

    def close(self) -> None:
        self.close_theirs()
        self._sock.close()

    @property
    def waits(self) -> bool:
        """Whether something is still to be sent."""
        return bool(self._queue)

    def send(self, data: bytes, descriptor: int = -1) -> None:
        """Send an encoded message, now as far as the node takes it; `flush` sends the rest.

        The descriptor stays the caller's, and has to stay open until all is sent.
        """
        right = encoded_descriptor(descriptor) if descriptor >= 0 else b""
        self._queue.append((memoryview(data), right))
        self.flush()

    def flush(self) -> None:
        """Send as much as the node takes now."""
        while self._queue:
            data, right = self._queue[0]
            extra = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, right)] if right else []
            try:
                count = self._sock.sendmsg([data[:_READ]], extra, NOSIGNAL)
            except BlockingIOError:
                return
            except OSError:  # the node is gone, as its parent reports
                self._queue.clear()
                return
            rest = data[count:]
            if rest:
                self._queue[0] = (rest, b"")
            else:
                self._queue.pop(0)

    def read(self) -> "list[tuple]":
        """The messages that have arrived."""
        try:
            data = self._sock.recv(_READ)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        self.ended = not data
        self._data += data
        found = []
        while len(self._data) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(self._data[:LENGTH_BYTES], "little")
            if len(self._data) < end:
                break
            found.append(marshal.loads(memoryview(self._data)[LENGTH_BYTES:end]))
            del self._data[:end]
        return found


class Sockets:
    """Stands for the launcher's `Stdin`: a node gets its end of a channel as its standard input."""

    def __init__(self, channels: "list[Channel]") -> None:
        self._channels = channels

    def descriptor(self, index: int) -> int:
        return self._channels[index].theirs

    def sent(self, indices: range) -> None:
        for index in indices:
            self._channels[index].close_theirs()


def of_node() -> Wire:
    """In a node: its end, taken from the standard input, which is at its end from now on."""
    wire = Wire.adopt(os.dup(0))
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return wire
