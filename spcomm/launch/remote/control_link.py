# SPDX-License-Identifier: MIT
"""Control link: one end of a stream of messages between two machines, which outlives its connections.

Every message is delivered once and in order, whatever happens to the connections below. A link has no socket and no
clock: its owner passes it the received bytes, writes the bytes that it returns, and supplies the time. It does for
the launcher, the members of a room and their boxes what `csrc/net/link` does for the frames of gateways.

A record is a kind (1 byte), a number (8), a length (4), and a message. Messages have consecutive numbers, and are
kept until they are acknowledged. Before a connection is attached, each end reports through `acknowledging` the number
up to which it has them; the other end continues behind it and drops duplicates by their number.
"""

import struct
from collections import deque

WINDOW = 1 << 20  # unacknowledged bytes under way; one more message may follow
MOST_MESSAGE = 24 << 20
_HEAD = struct.Struct("<BQI")
_MESSAGE, _FINISH, _ACKNOWLEDGE = 1, 2, 3
# Received bytes that trigger an acknowledgement at once; fewer wait for the next beat.
_ACKNOWLEDGE_BYTES = 1 << 16


class LinkError(Exception):
    """Received bytes are not from the other end of this link; the connection must end."""


class ControlLink:
    """One end of a link. Times are those of a monotonic clock, in seconds."""

    def __init__(self, timeout_s: float, now: float) -> None:
        """`timeout_s`: the silence of the other end after which the link is dead."""
        self.timeout_s = timeout_s
        self.beat_s = timeout_s / 30  # between calls of `tick`
        self.is_attached = False
        self.is_over = False  # the other end has finished, and all its messages are delivered
        self.has_finished = False  # this end has
        self.received = 0  # the number of the last delivered message
        self.kept = 0  # bytes of unacknowledged messages
        self._held: int | None = None  # the last number that may be acknowledged
        self._held_bytes = 0  # bytes delivered since
        self._records: deque[bytes] = (
            deque()
        )  # not acknowledged; the first has the number behind `_acknowledged`
        self._acknowledged = 0
        self._next = 0  # in `_records`: the first that was not written to this connection
        self._under_way = 0  # bytes of those before it
        self._came = bytearray()
        self._unacknowledged = 0  # bytes received since the last acknowledgement
        self._owes = False  # an acknowledgement is due now
        self._heard_at = self._ticked_at = now
        self._has_told = False  # something was sent since the last beat

    # Messages

    def send(self, message: bytes) -> None:
        """Queue a message; after `finish`, drop it."""
        if len(message) > MOST_MESSAGE:
            raise ValueError(f"a message of {len(message)} bytes; a control link takes {MOST_MESSAGE}")
        self._queue(_MESSAGE, message)

    def finish(self) -> None:
        """Mark the end of this end's messages."""
        if not self.has_finished:
            self._queue(_FINISH, b"")
            self.has_finished = True

    def _queue(self, kind: int, message: bytes) -> None:
        if self.has_finished:
            return
        number = self._acknowledged + len(self._records) + 1
        record = _HEAD.pack(kind, number, len(message)) + message
        self._records.append(record)
        self.kept += len(record)

    @property
    def has_arrived(self) -> bool:
        """Whether the other end has acknowledged everything, the finish included."""
        return self.has_finished and not self._records

    @property
    def is_held(self) -> bool:
        return self._held is not None

    def hold(self, do: bool) -> None:
        """Stop acknowledging: received messages cannot be passed on yet. The other end pauses in time."""
        if do and self._held is None:
            self._held, self._held_bytes = self.received, 0
        elif not do and self._held is not None:
            self._held, self._owes = None, True

    # Connections

    @property
    def acknowledging(self) -> int:
        """The number up to which this end has all messages, as sent to the other end."""
        return self.received if self._held is None else self._held

    def attach(self, acknowledged: int, now: float) -> None:
        """Continue over a new connection, whose other end has all messages up to this number. Raises `LinkError`."""
        self.detach()
        self._on_acknowledge(acknowledged)
        if acknowledged != self._acknowledged:
            raise LinkError("asks for messages that are not kept any more")
        self.is_attached = True
        self._heard_at = max(self._heard_at, now)

    def detach(self) -> None:
        """End the connection: forget received bytes of an incomplete record, and all output."""
        self.is_attached = False
        self._came.clear()
        self._next = self._under_way = self._unacknowledged = 0
        self._owes = False

    def output(self, most: int) -> bytes:
        """Return about that many bytes to write now; empty: all is under way, or enough."""
        if not self.is_attached:
            return b""
        parts, size = [], 0
        if self._owes:
            parts.append(_HEAD.pack(_ACKNOWLEDGE, self.acknowledging, 0))
            self._owes, self._unacknowledged = False, 0
        while self._next < len(self._records) and size < most and self._under_way < WINDOW:
            record = self._records[self._next]
            parts.append(record)
            size += len(record)
            self._next += 1
            self._under_way += len(record)
        self._has_told = self._has_told or bool(parts)
        return b"".join(parts)

    def feed(self, data: bytes, now: float, found: "list[bytes] | deque[bytes]") -> None:
        """Append the complete messages among received bytes. `LinkError`: the bytes after them are malformed."""
        self._came += data
        at = 0
        while len(self._came) - at >= _HEAD.size:
            kind, number, length = _HEAD.unpack_from(self._came, at)
            if length > (MOST_MESSAGE if kind == _MESSAGE else 0):
                raise LinkError("sent a record that is too long")
            end = at + _HEAD.size + length
            if len(self._came) < end:
                break
            self._on_record(kind, number, bytes(self._came[at + _HEAD.size : end]), found)
            at = end
            self._heard_at = now
        del self._came[:at]

    def _on_record(self, kind: int, number: int, message: bytes, found: "list[bytes] | deque[bytes]") -> None:
        if kind == _ACKNOWLEDGE:
            self._on_acknowledge(number)
            return
        is_next = number == self.received + 1 and not self.is_over
        if kind not in (_MESSAGE, _FINISH) or not (is_next or number <= self.received):
            raise LinkError("sent a record out of order")
        size = _HEAD.size + len(message)
        self._unacknowledged += size
        if kind == _FINISH or self._unacknowledged >= _ACKNOWLEDGE_BYTES:
            self._owes = True
        if number <= self.received:
            return
        self.received = number
        self._held_bytes += size
        if self._held is not None and self._held_bytes > WINDOW + MOST_MESSAGE + _HEAD.size:
            raise LinkError("sends more than it may")
        if kind == _FINISH:
            self.is_over = True
        else:
            found.append(message)

    def _on_acknowledge(self, number: int) -> None:
        if number > self._acknowledged + len(self._records):
            raise LinkError("acknowledges what was never sent")
        while self._acknowledged < number:
            size = len(self._records.popleft())
            self._acknowledged += 1
            self.kept -= size
            if self._next:
                self._next -= 1
                self._under_way -= size

    # Time

    def tick(self, now: float) -> None:
        """Send, once in each beat, a sign of life to the other end. Time without calls does not count: this process was
        stopped, or its machine slept, and the bytes that the other end sent meanwhile are still unread."""
        if now - self._ticked_at > self.timeout_s / 6:
            self._heard_at += now - self._ticked_at
        self._ticked_at = now
        self._owes = self._owes or self._unacknowledged > 0 or not self._has_told
        self._has_told = False

    def is_silent(self, now: float) -> bool:
        """Whether to give up the connection and make another one."""
        return now - self._heard_at >= self.timeout_s / 3

    def is_dead(self, now: float) -> bool:
        """Whether the other end was silent for too long, over all connections."""
        return now - self._heard_at >= self.timeout_s
