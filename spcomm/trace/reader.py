# SPDX-License-Identifier: MIT
"""Reads a trace file: JSON that Perfetto and Chrome open as well, with spcomm's own data in `otherData`.

The reader checks all content of the file: each complaint is one sentence that names the finding, the requirement and
the next step.
"""

import json
import os
import reprlib
import stat
from typing import TYPE_CHECKING

from spcomm.text import counted, printable
from spcomm.trace.errors import TraceError
from spcomm.trace.model import FORMAT, MOST, THREADS_APART, Call, Message, Part, Region, Trace, Track, Wait

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LONGEST = 60  # characters of a value, in a complaint
_BEFORE, _AFTER = '{"traceEvents": [', '], "displayTimeUnit": "ns", "otherData": '  # as writing.py has it
_MAKE_ONE = "`spcomm run --trace t.json program.py` makes one"


def read(path: "str | os.PathLike[str]") -> Trace:
    """Read a trace file.

    Parameters
    ----------
    path
        A file that `spcomm run --trace` has written.

    Returns
    -------
    Trace
        Its times are microseconds from the first event.

    Raises
    ------
    TraceError
        The file cannot be read, is cut off, is no trace, or has another format.
    """
    name = os.fspath(path)
    try:
        with open(name, encoding="utf-8") as file:
            if stat.S_ISCHR(os.fstat(file.fileno()).st_mode) and not file.isatty():
                raise TraceError(f"{name} is a device, not a trace; {_MAKE_ONE}")  # some never end
            text = file.read()
    except OSError as error:
        raise TraceError(f"cannot read {name}: {error.strerror}; {_MAKE_ONE}") from None
    except UnicodeDecodeError:
        raise TraceError(f"{name} is not text, and a trace is JSON; {_MAKE_ONE}") from None
    return parse(text, name)


def parse(text: str, name: str = "the trace") -> Trace:
    """Read a trace from text; `name` is its name in complaints. See `read`."""
    about = _about(text, name)
    if about is not None:
        try:
            return _Reader(name, _one_by_one(text), about).trace()
        except _ForeignFormatError:
            pass
    content = _json(text, name)
    events, other = _outside(content, name)
    return _Reader(name, events, other).trace()


def from_rows(rows: "Iterable[object]", about: dict, begin: "float | None" = None) -> Trace:
    """Read rows that are not in a file; `about`: their `otherData`. Times count from `begin`; None: the first event."""
    return _Reader("the trace", rows, about).trace(begin)


class _ForeignFormatError(Exception):
    """It is not as spcomm writes it, byte by byte: it was edited, or is cut off."""


def _about(text: str, name: str) -> "dict | None":
    """`otherData`, if that and the events stand where spcomm writes them. Then events need not all be there at once:
    as objects of Python they take ten times the memory of the result."""
    end = text.rfind(_AFTER)
    if end < 0 or not text.startswith(_BEFORE):
        return None
    try:
        other, at = _DECODER.raw_decode(text, end + len(_AFTER))
    except (ValueError, RecursionError):
        return None
    if text[at:].strip() != "}":
        return None
    return _outside({"traceEvents": [], "otherData": other}, name)[1]


def _one_by_one(text: str) -> "Iterator[object]":
    at, end = len(_BEFORE), text.rfind(_AFTER)
    comma = 0
    while at != end:
        try:
            event, at = _DECODER.raw_decode(text, at + comma)
        except (ValueError, RecursionError):
            raise _ForeignFormatError from None
        yield event
        if at != end and not text.startswith(", ", at):
            raise _ForeignFormatError
        comma = 2


def _no_number(_word: str) -> float:
    raise ValueError


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def _json(text: str, name: str) -> object:
    if not text.strip():
        raise TraceError(f"{name} is empty: the run has not ended yet, or could not write it; {_MAKE_ONE}")

    def refuse(word: str) -> float:
        raise TraceError(f"{name} has {word} for a number, which is not JSON; {_MAKE_ONE}")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise TraceError(f"{name} is nested deeper than any trace; {_MAKE_ONE}") from None
    except json.JSONDecodeError as error:
        if '"traceEvents"' in text[:1000] and not text.rstrip().endswith("}"):
            length = counted(len(text), "character")
            raise TraceError(
                f"{name} is cut off after {length}, and a trace can only be read as a whole; "
                "was it copied to its end, is the disk full? Run the program with --trace once more"
            ) from None
        raise TraceError(
            f"{name} is not JSON (line {error.lineno}, column {error.colno}: {error.msg}); {_MAKE_ONE}"
        ) from None
    except ValueError:  # Python refuses to convert it
        raise TraceError(f"{name} has a number of thousands of digits; {_MAKE_ONE}") from None


def _outside(content: object, name: str) -> "tuple[list, dict]":
    """The events and the data of the run, if the format is ours."""
    if not isinstance(content, dict) or not isinstance(content.get("traceEvents"), list):
        raise TraceError(f"{name} is JSON, but no trace: it has no list `traceEvents`; {_MAKE_ONE}")
    other = content.get("otherData")
    if not isinstance(other, dict) or "spcomm" not in other:
        raise TraceError(
            f"{name} is a trace of something else: `otherData` does not name spcomm; ui.perfetto.dev may show "
            f"it, and {_MAKE_ONE}"
        )
    if other.get("format") != FORMAT or isinstance(other["format"], bool):
        raise TraceError(
            f"{name} has format {_short(other.get('format'))}, written by spcomm {_short(other['spcomm'])}, and this "
            f"one reads format {FORMAT}; use that version, or run the program once more with this one"
        )
    return content["traceEvents"], other


class _Reader:
    """Goes through the events once, then puts related events in order."""

    def __init__(self, name: str, events: "Iterable[object]", other: dict) -> None:
        self._name = name
        self._events = events
        self._other = other
        self._at = "`otherData`"  # the part being read, for error messages
        self._nodes = self._count("nodes", 1)
        self._boxes = self._count("boxes", 1)
        self._map = self._list("map", self._nodes, int)
        self._lost = self._list("overwritten", self._nodes, int)
        self._clock = self._list("clock_error_us", self._boxes, float)
        self._cores = self._count("cores", 0) if "cores" in other else 0
        self._missing = self._ranks("missing") if "missing" in other else []
        self._unnamed = sum(self._list("unnamed", self._nodes, int)) if "unnamed" in other else 0
        if any(not 0 <= box < self._boxes for box in self._map):
            self._fail(f"`map` names boxes other than 0 to {self._boxes - 1}")
        self._tracks: dict[int, Track] = {rank: self._track(rank) for rank in range(self._nodes)}
        self._messages: dict[str, Message] = {}
        self._words: dict[str, str] = {}  # names and lines come again and again

    def trace(self, counted_from: "float | None" = None) -> Trace:
        for number, event in enumerate(self._events):
            self._at = f"event {number}"
            if not isinstance(event, dict):
                self._fail("it is no object")
            if event.get("ph") == "X":
                self._span(event)
            elif event.get("ph") in ("s", "f"):
                self._end_of_message(event)
        tracks = [self._tracks[number] for number in sorted(self._tracks, key=_by_rank)]
        messages = list(self._messages.values())
        begin, end = self._lives(tracks, messages)
        begin = begin if counted_from is None else counted_from
        for track in tracks:
            _sort(track)
        _shift(tracks, messages, begin)
        messages.sort(key=lambda message: message.received if message.sent is None else message.sent)
        program, version = (_word(self._other.get(key, "?")) for key in ("program", "spcomm"))
        sizes = (self._nodes, self._boxes, 0.0, end - begin)
        code = self._whole(self._other, "exit_code") if "exit_code" in self._other else 0
        known = (self._lost, self._clock, self._cores, code)
        return Trace(
            program, version, *sizes, tracks, messages, *known, missing=self._missing, unnamed=self._unnamed
        )

    def _span(self, event: dict) -> None:
        track = self._track_of(event)
        begin = self._number(event, "ts")
        length = self._number(event, "dur")
        if length < 0:
            self._fail(f"it lasts {length:g} µs")
        kind, name = event.get("cat"), self._once(event.get("name", "?"))
        told = event.get("args", {})
        if not isinstance(told, dict):
            self._fail("its `args` are no object")
        if kind == "call":
            line = told.get("line")
            line = self._once(line) if line else None
            call = Call(name, begin, begin + length, line, bool(told.get("open")))
            self._details(call, told)
            track.calls.append(call)
        elif kind == "wait":
            track.waits.append(Wait(begin, begin + length))
        elif kind == "region":
            track.regions.append(Region(name, begin, begin + length))
        elif kind == "handler":
            track.handlers.append(Region(name, begin, begin + length))
        elif kind == "core":
            track.core_waits.append(Region(name, begin, begin + length))
        elif kind == "starting":
            track.begin, track.starting = begin + length, length

    def _details(self, call: Call, told: dict) -> None:
        """Description of a call, from its own record."""
        if "cost" in told:
            call.cost = self._number(told, "cost", "units of work")
            if call.cost < 0:
                self._fail(f"its `cost` is {call.cost:g}, less than no work")
        if "part" in told:
            part = told["part"]
            if not isinstance(part, list) or [type(number) for number in part] != [int] * 4:
                self._fail(f"its `part` is {_short(part)}, not four whole numbers")
            call.part = found = Part(*part)
            inside = found.number > 0 and 0 <= found.first < self._nodes and found.size <= self._nodes
            if not (inside and 0 <= found.rank < found.size):
                self._fail(f"its `part` is {_short(part)}, which a run of {self._nodes} nodes does not have")
        for key in ("root", "barrier"):
            if key in told:
                call.number = self._whole(told, key)
        call.ended = _word(told.get("ended", ""))

    def _end_of_message(self, event: dict) -> None:
        track = self._track_of(event)
        moment = self._number(event, "ts")
        told = event.get("args")
        if not isinstance(told, dict):
            self._fail("a message without `args`")
        key = event.get("id")
        if not isinstance(key, str):
            self._fail(f"a message whose id is {_short(key)}")
        message = self._messages.get(key)
        if message is None:
            numbers = [self._whole(told, word) for word in ("from", "to", "tag", "bytes")]
            if any(not 0 <= rank < self._nodes for rank in numbers[:2]) or not 0 <= numbers[3] < MOST:
                self._fail(
                    f"a message of {_short(numbers[3])} bytes from node {_short(numbers[0])} to {_short(numbers[1])}"
                )
            message = self._messages[key] = Message(*numbers, self._once(told.get("context", "user")))
        if event["ph"] == "s":
            message.sent, message.sender = moment, track.number
        else:
            message.received, message.receiver = moment, track.number

    def _track_of(self, event: dict) -> Track:
        number = event.get("tid")
        found = self._tracks.get(number) if isinstance(number, int) else None
        if found is None:
            if not isinstance(number, int) or number < 0 or number % THREADS_APART >= self._nodes:
                self._fail(
                    f"it is of track {_short(number)}, which none of {counted(self._nodes, 'node')} has"
                )
            found = self._tracks[number] = self._track(number)
        return found

    def _track(self, number: int) -> Track:
        rank = number % THREADS_APART
        return Track(rank, number // THREADS_APART, self._map[rank])

    def _lives(self, tracks: "list[Track]", messages: "list[Message]") -> "tuple[float, float]":
        """Sets when each track begins and ends; returns when the trace does."""
        moments: dict[int, list[float]] = {}
        for track in tracks:
            live = [track.begin - track.starting, track.begin] if track.starting else []
            items = [*track.calls, *track.waits, *track.regions, *track.handlers, *track.core_waits]
            if items or live:
                moments[track.number] = [
                    min([*live, *(item.begin for item in items)]),
                    max([*live, *(item.end for item in items)]),
                ]
        for message in messages:
            for number, moment in ((message.sender, message.sent), (message.receiver, message.received)):
                if number is not None:
                    known = moments.setdefault(number, [moment, moment])
                    known[:] = [min(known[0], moment), max(known[1], moment)]
        if not moments:
            return 0.0, 0.0
        begin, end = min(m[0] for m in moments.values()), max(m[1] for m in moments.values())
        for track in tracks:
            live = track.begin
            track.begin, track.end = moments.get(track.number, (begin, begin))
            if track.thread == 0:
                # Between its start and its first call a node computes. If events were overwritten, its activity before
                # the remaining events is unknown.
                track.begin = live if track.starting else track.begin if self._lost[track.rank] else begin
                ends = [m[1] for number, m in moments.items() if number % THREADS_APART == track.rank]
                track.end = max(ends, default=begin)
        return begin, end

    def _number(self, event: dict, key: str, unit: str = "microseconds") -> float:
        value = event.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) >= MOST:
            self._fail(f"its `{key}` is {_short(value)}, not a number of {unit}")
        return float(value)

    def _whole(self, told: dict, key: str) -> int:
        value = told.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            self._fail(f"its `{key}` is {_short(value)}, not a whole number")
        return value

    def _count(self, key: str, least: int) -> int:
        value = self._whole(self._other, key)
        if not least <= value <= THREADS_APART:
            self._fail(f"its `{key}` is {_short(value)}, not {least} to {THREADS_APART}")
        return value

    def _list(self, key: str, count: int, kind: type) -> list:
        values = self._other.get(key)
        kinds = (int, float) if kind is float else (int,)
        if not isinstance(values, list) or len(values) != count:
            self._fail(f"its `{key}` is no list of {counted(count, 'number')}")
        if any(isinstance(v, bool) or not isinstance(v, kinds) or not 0 <= v < MOST for v in values):
            self._fail(f"its `{key}` has something else than numbers from 0 on")
        return [kind(value) for value in values]

    def _ranks(self, key: str) -> "list[int]":
        values = self._other[key]
        if not isinstance(values, list) or len(values) > self._nodes:
            self._fail(f"its `{key}` is not a list of ranks")
        if any(type(rank) is not int or not 0 <= rank < self._nodes for rank in values):
            self._fail(f"its `{key}` names nodes other than 0 to {self._nodes - 1}")
        return values

    def _once(self, value: object) -> str:
        word = _word(value)
        return self._words.setdefault(word, word)

    def _fail(self, what: str) -> None:
        raise TraceError(
            f"{self._name} is not as spcomm writes a trace ({self._at}: {what}); if it was edited, take the original, "
            "or run the program with --trace once more"
        )


def _short(value: object) -> str:
    """As Python writes it, but never a page of it."""
    text = reprlib.repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _word(value: object) -> str:
    """Return a name for a terminal and any file: unprintable characters are replaced."""
    return printable(str(value), "")


def _by_rank(number: int) -> "tuple[int, int]":
    return number % THREADS_APART, number // THREADS_APART


def _sort(track: Track) -> None:
    """By time, outer calls before those within them; then each wait learns the line of the call that it is in."""
    for items in (track.calls, track.waits, track.regions, track.handlers, track.core_waits):
        items.sort(key=lambda item: (item.begin, -item.end))
    around: list[Call] = []  # those that go on, outer ones first
    at = 0
    for wait in track.waits:
        while at < len(track.calls) and track.calls[at].begin <= wait.begin:
            _drop_ended(around, track.calls[at].begin)
            around.append(track.calls[at])
            at += 1
        _drop_ended(around, wait.begin)
        wait.line = next((call.line for call in reversed(around) if call.line), None)


def _drop_ended(calls: "list[Call]", moment: float) -> None:
    while calls and calls[-1].end <= moment:
        calls.pop()


def _shift(tracks: "list[Track]", messages: "list[Message]", begin: float) -> None:
    """Lets all times count from the beginning."""
    for track in tracks:
        track.begin -= begin
        track.end -= begin
        for item in (*track.calls, *track.waits, *track.regions, *track.handlers, *track.core_waits):
            item.begin -= begin
            item.end -= begin
    for message in messages:
        message.sent = None if message.sent is None else message.sent - begin
        message.received = None if message.received is None else message.received - begin
