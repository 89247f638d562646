# SPDX-License-Identifier: MIT
"""Control link: one end of a stream of messages between two machines, which outlives its connections.

Every message is delivered once and in order, whatever happens to the connections below. It has no socket and no clock:
its owner passes it the bytes that have come, writes those that it has, and tells it the time. It does for the launcher,
the members of a room and their boxes what `csrc/net/link` does for the frames of gateways.

A record is a kind (1 byte), a number (8), a length (4), and a message. Messages have consecutive numbers, and are kept
until they are acknowledged. Before a connection is attached, each end says by `acknowledging` up to which number it
has them; the other goes on behind it, and what comes twice is dropped by its number.
"""

import struct
from collections import deque

WINDOW = 1 << 20  # bytes under way that were not acknowledged; one message more may be
MOST_MESSAGE = 24 << 20
_HEAD = struct.Struct("<BQI")
_MESSAGE, _FINISH, _ACKNOWLEDGE = 1, 2, 3
_ACKNOWLEDGE_BYTES = (
    1 << 16
)  # that have come, after which an acknowledgement goes out at once; else with the next beat


class LinkError(Exception):
    """The bytes that came are not those of the other end of this link: the connection is to be ended."""


class ControlLink:
    """One end. Times are those of a monotonic clock, in seconds."""

    def __init__(self, timeout_s: float, now: float) -> None:
        """`timeout_s`: how long the other end may be silent before the link is dead."""
        self.timeout_s = timeout_s
        self.beat_s = timeout_s / 30  # between calls of `tick`
        self.is_attached = False
        self.is_over = False  # the other end has finished, and all that it has sent is delivered
        self.has_finished = False  # this end has
        self.received = 0  # the number of the last message that was delivered
        self.kept = 0  # bytes of messages that were not acknowledged
        self._held: int | None = None  # the last number that may be acknowledged
        self._held_bytes = 0  # delivered since
        self._records: deque[bytes] = (
            deque()
        )  # not acknowledged; the first has the number behind `_acknowledged`
        self._acknowledged = 0
        self._next = 0  # in `_records`: the first that was not put out over this connection
        self._under_way = 0  # bytes of those before it
        self._came = bytearray()
        self._unacknowledged = 0  # bytes that came since the last acknowledgement
        self._owes = False  # an acknowledgement, now
        self._heard_at = self._ticked_at = now
        self._has_told = False  # something since the last beat

    # Messages

    def send(self, message: bytes) -> None:
        """Queue a message; after `finish`, drop it."""
        if len(message) > MOST_MESSAGE:
            raise ValueError(f"a message of {len(message)} bytes; a control link takes {MOST_MESSAGE}")
        self._queue(_MESSAGE, message)

    def finish(self) -> None:
        """Say that nothing follows."""
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
        """Acknowledge no more from now on: what has come cannot be passed on yet. The other end pauses in time."""
        if do and self._held is None:
            self._held, self._held_bytes = self.received, 0
        elif not do and self._held is not None:
            self._held, self._owes = None, True

    # Connections

    @property
    def acknowledging(self) -> int:
        """The number up to which this end has all messages, as the other end is told."""
        return self.received if self._held is None else self._held

    def attach(self, acknowledged: int, now: float) -> None:
        """Go on over a new connection, whose other end has all messages up to this number. Raises `LinkError`."""
        self.detach()
        self._on_acknowledge(acknowledged)
        if acknowledged != self._acknowledged:
            raise LinkError("asks for messages that are not kept any more")
        self.is_attached = True
        self._heard_at = max(self._heard_at, now)

    def detach(self) -> None:
        """The connection is over: forget what has come of an incomplete record, and what was put out."""
        self.is_attached = False
        self._came.clear()
        self._next = self._under_way = self._unacknowledged = 0
        self._owes = False

    def output(self, most: int) -> bytes:
        """Return what is to be written now, about so many bytes; nothing: all is under way, or enough."""
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
        """Append the messages that are complete, of bytes that have come. `LinkError`: what follows them is wrong."""
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
        """Once in each beat: show the other end that this one is there. Time in which nobody has called is not counted:
        this process was stopped, or its machine slept, and what the other end has said meanwhile was not read yet."""
        if now - self._ticked_at > self.timeout_s / 6:
            self._heard_at += now - self._ticked_at
        self._ticked_at = now
        self._owes = self._owes or self._unacknowledged > 0 or not self._has_told
        self._has_told = False

    def is_silent(self, now: float) -> bool:
        """Whether the connection is to be given up, and another one made."""
        return now - self._heard_at >= self.timeout_s / 3

    def is_dead(self, now: float) -> bool:
        """Whether the other end was silent for too long, over all connections."""
        return now - self._heard_at >= self.timeout_s
