# SPDX-License-Identifier: MIT
"""The caller's end of the socket through which a node gets its work and gives back its results.

Messages have the format of `launch.base.wire`, as the node's have. This end never blocks: a node that is stopped,
or computes and does not read, must not keep the caller from hearing a Ctrl-C.
"""

import json
import marshal
import os
import socket

from spcomm.launch.base.wire import LENGTH_BYTES, NOSIGNAL, Wire, rights
from spcomm.text import printable

_READ = 1 << 20
_MOST_HEAD = 16 << 20  # of a plain message: the name of an exception is in it
_MOST_BODY = 1 << 32
_KINDS: dict[
    str, tuple[type, ...]
] = {  # the items of the messages of nodes; those that are bytes may be None
    "done": (str, bytes),
    "failed": (str, bytes, str, bytes, bytes),
    "figure": (str, bytes),
    "item": (str, int, bytes),
}


class Channel:
    """One node's socket, seen from the caller."""

    def __init__(self, is_plain: bool = False) -> None:
        """`is_plain`: the node is on another machine, and its messages have the format of `PlainWire`."""
        self._take = _take_plain if is_plain else _take
        self._sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sock.setblocking(False)
        os.set_inheritable(self._sock.fileno(), False)
        self.theirs = theirs.detach()
        os.set_inheritable(self.theirs, False)
        self._queue: list[tuple[memoryview, list]] = []  # data to send, and the descriptors beside it
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
        self._queue.append((memoryview(data), rights(descriptor) if descriptor >= 0 else []))
        self.flush()

    def flush(self) -> None:
        """Send as much as the node takes now."""
        while self._queue:
            data, extra = self._queue[0]
            try:
                count = self._sock.sendmsg([data[:_READ]], extra, NOSIGNAL)
            except BlockingIOError:
                return
            except OSError:  # the node is gone, as its parent reports
                self._queue.clear()
                return
            rest = data[count:]
            if rest:
                self._queue[0] = (rest, [])
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
        while (message := self._take(self._data)) is not None:
            found.append(message)
        return found


def _take(data: bytearray) -> "tuple | None":
    """Take the first message out of what has arrived; None: it is incomplete."""
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    if len(data) < max(end, LENGTH_BYTES + 1):
        return None
    message = marshal.loads(memoryview(data)[LENGTH_BYTES:end])
    del data[:end]
    return message


def _take_plain(data: bytearray) -> "tuple | None":
    """The same of `PlainWire`. Raises `ValueError` or `TypeError` for what no node sends."""
    at = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    if at > _MOST_HEAD:
        raise ValueError(f"a message that begins with {at} bytes")
    if len(data) < max(at, LENGTH_BYTES + 1):
        return None
    try:
        items = json.loads(data[LENGTH_BYTES:at])
    except RecursionError:
        raise ValueError("a message that is nested too deeply") from None
    kinds = _KINDS[items[0]]
    end = at + sum(
        item for item, kind in zip(items, kinds, strict=True) if kind is bytes and item is not None
    )
    if end - at > _MOST_BODY or any(
        not isinstance(item, int if kind is bytes else kind) or (isinstance(item, int) and item < 0)
        for item, kind in zip(items, kinds, strict=True)
        if kind is not bytes or item is not None
    ):
        raise ValueError(f"a message of a wrong form: {items}")
    if len(data) < end:
        return None
    message = []
    for item, kind in zip(items, kinds, strict=True):
        if kind is not bytes or item is None:
            message.append(printable(item, "") if kind is str else item)
            continue
        message.append(bytes(memoryview(data)[at : at + item]))
        at += item
    del data[:end]
    return tuple(message)


class PlainWire(Wire):
    """A node's end, if its caller is on another machine, which does not let it have code run or an interpreter crash.

    What it sends is a length, then in JSON the items of the message, with the length of each that is bytes, and then
    these bytes. What it receives is of the same format as elsewhere: it runs the caller's code anyway.
    """

    def send(self, message: object, _descriptors: "tuple[int, ...]" = ()) -> None:
        items: tuple = message  # type: ignore[assignment]
        kinds = _KINDS[items[0]]
        pieces = [item for item, kind in zip(items, kinds, strict=True) if kind is bytes and item is not None]
        lengths = [
            len(item) if kind is bytes and item is not None else item
            for item, kind in zip(items, kinds, strict=True)
        ]
        head = json.dumps(lengths).encode("ascii")
        for piece in (len(head).to_bytes(LENGTH_BYTES, "little") + head, *pieces):
            self._sock.sendall(piece, NOSIGNAL)


class Sockets:
    """Stands for the launcher's `Stdin`: a node gets its end of a channel as its standard input."""

    def __init__(self, channels: "list[Channel]") -> None:
        self._channels = channels

    def descriptor(self, index: int) -> int:
        return self._channels[index].theirs

    def sent(self, indices: range) -> None:
        for index in indices:
            self._channels[index].close_theirs()


def of_node(is_plain: bool = False) -> Wire:
    """In a node: its end, taken from the standard input, which is at its end from now on."""
    wire = (PlainWire if is_plain else Wire).adopt(os.dup(0))
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return wire
