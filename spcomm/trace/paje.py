# SPDX-License-Identifier: MIT
"""A trace in the Pajé format, for ViTE, PajeNG and what else reads it.

The file defines its own events in its header. Containers are the run, its boxes and its threads; a thread has a state
(computing, waiting, transferring), a stack of calls, a stack of regions; links are the messages.
"""

from collections.abc import Iterable, Iterator

from spcomm.trace import table
from spcomm.trace.model import Message, Trace, Track
from spcomm.trace.states import COLORS

_EVENTS = (
    ("PajeDefineContainerType", 0, "Alias string, Type string, Name string"),
    ("PajeDefineStateType", 1, "Alias string, Type string, Name string"),
    ("PajeDefineVariableType", 2, "Alias string, Type string, Name string, Color color"),
    ("PajeDefineLinkType", 3,
     "Alias string, Type string, StartContainerType string, EndContainerType string, Name string"),
    ("PajeDefineEntityValue", 4, "Alias string, Type string, Name string, Color color"),
    ("PajeCreateContainer", 5, "Time date, Alias string, Type string, Container string, Name string"),
    ("PajeDestroyContainer", 6, "Time date, Type string, Name string"),
    ("PajeSetState", 7, "Time date, Type string, Container string, Value string"),
    ("PajePushState", 8, "Time date, Type string, Container string, Value string"),
    ("PajePopState", 9, "Time date, Type string, Container string"),
    ("PajeSetVariable", 10, "Time date, Type string, Container string, Value double"),
    ("PajeStartLink", 11, "Time date, Type string, Container string, StartContainer string, Value string, Key string"),
    ("PajeEndLink", 12, "Time date, Type string, Container string, EndContainer string, Value string, Key string"),
)  # fmt: skip
_NUMBER = {name.removeprefix("Paje"): number for name, number, _fields in _EVENTS}
_ALIASES = {"computing": "C", "transferring": "T", "waiting": "W"}
_ENDED = ("E", "ended", "0.9 0.9 0.9")  # alias, name, colour
_GREY = "0.6 0.6 0.6"


def paje(trace: Trace) -> "Iterator[str]":
    """The lines of the file, each with its end.

    Parameters
    ----------
    trace
        Messages without a known begin and end are left out: links need both. Where the clocks of two boxes let a
        message arrive before it was sent, it arrives at that moment.

    Yields
    ------
    str
    """
    for name, number, fields in _EVENTS:
        yield f"%EventDef {name} {number}\n"
        for field in fields.split(", "):
            yield f"%\t{field}\n"
        yield "%EndEventDef\n"
    names = _names(trace)
    yield from _types(names)
    yield from _containers(trace)
    # Python's sort keeps the order of equal keys: at one moment things end before others begin, outer ones first.
    for _moment, _rank, line in sorted(_happenings(trace, names), key=lambda item: item[:2]):
        yield line
    for track in trace.tracks:
        yield _line("DestroyContainer", _time(trace.end), "Thread", _alias(track))
    yield from (_line("DestroyContainer", _time(trace.end), "Box", f"b{box}") for box in range(trace.boxes))
    yield _line("DestroyContainer", _time(trace.end), "Run", "run")


def _line(event: str, *words: object) -> str:
    return " ".join([str(_NUMBER[event]), *map(str, words)]) + "\n"


def _quoted(name: str) -> str:
    """Strings have no escapes there: what would end one is replaced."""
    return '"' + " ".join(name.replace('"', "'").split()) + '"'


def _time(moment: float) -> str:
    return f"{moment / 1e6:.9f}"


def _alias(track: Track) -> str:
    return f"n{track.number}"


def _names(trace: Trace) -> "dict[tuple[str, str], str]":
    """Short names of the values of calls and regions."""
    calls = sorted({call.name for track in trace.tracks for call in track.calls})
    regions = sorted({region.name for track in trace.tracks for region in track.regions})
    found = {("Call", name): f"c{at}" for at, name in enumerate(calls)}
    return found | {("Region", name): f"r{at}" for at, name in enumerate(regions)}


def _color(state: str) -> str:
    """Red, green and blue, 0 to 1 each."""
    digits = COLORS[state].removeprefix("#")
    return " ".join(str(round(int(digits[at : at + 2], 16) / 255, 2)) for at in (0, 2, 4))


def _types(names: "dict[tuple[str, str], str]") -> "Iterator[str]":
    yield _line("DefineContainerType", "Run", 0, '"run"')
    yield _line("DefineContainerType", "Box", "Run", '"box"')
    yield _line("DefineContainerType", "Thread", "Box", '"node"')
    for kind, name in (("State", "state"), ("Call", "call"), ("Region", "region")):
        yield _line("DefineStateType", kind, "Thread", f'"{name}"')
    yield _line("DefineVariableType", "Running", "Run", '"nodes that compute"', f'"{_color("computing")}"')
    yield _line("DefineLinkType", "Message", "Run", "Thread", "Thread", '"message"')
    known = [(alias, name, _color(name)) for name, alias in _ALIASES.items()]
    for alias, name, color in (*known, _ENDED):
        yield _line("DefineEntityValue", alias, "State", f'"{name}"', f'"{color}"')
    for (kind, name), alias in names.items():
        yield _line("DefineEntityValue", alias, kind, _quoted(name), f'"{_GREY}"')


def _containers(trace: Trace) -> "Iterator[str]":
    begin = _time(trace.begin)
    yield _line("CreateContainer", begin, "run", "Run", 0, _quoted(trace.program))
    for box in range(trace.boxes):
        yield _line("CreateContainer", begin, f"b{box}", "Box", "run", f'"box {box}"')
    for track in trace.tracks:
        yield _line(
            "CreateContainer", begin, _alias(track), "Thread", f"b{track.box}", f'"node {track.name}"'
        )


def _happenings(trace: Trace, names: "dict[tuple[str, str], str]") -> "Iterator[tuple[float, int, str]]":
    """(when, 0 for ends and 1 for begins, line)."""
    for track in trace.tracks:
        yield from _states(track)
        yield from _stack(track, "Call", track.calls, names)
        yield from _stack(track, "Region", track.regions, names)
    for moment, count in trace.running():
        yield moment, 1, _line("SetVariable", _time(moment), "Running", "run", count)
    for number, message in enumerate(trace.messages):
        if message.sent is not None and message.received is not None:
            yield from _link(trace, number, message)


def _states(track: Track) -> "Iterator[tuple[float, int, str]]":
    states = (track.computing(), track.transferring(), track.waiting())
    for alias, spans in zip(_ALIASES.values(), states, strict=True):
        for begin, _end in spans:
            yield begin, 1, _line("SetState", _time(begin), "State", _alias(track), alias)
    yield track.end, 1, _line("SetState", _time(track.end), "State", _alias(track), _ENDED[0])


def _stack(
    track: Track, kind: str, items: "Iterable", names: "dict[tuple[str, str], str]"
) -> "Iterator[tuple[float, int, str]]":
    for item in items:
        if item.end > item.begin:  # at one moment its end would come first
            yield (
                item.begin,
                1,
                _line("PushState", _time(item.begin), kind, _alias(track), names[kind, item.name]),
            )
            yield item.end, 0, _line("PopState", _time(item.end), kind, _alias(track))


def _link(trace: Trace, number: int, message: Message) -> "Iterator[tuple[float, int, str]]":
    sent = min(max(message.sent, trace.begin), trace.end)
    received = min(max(message.received, sent), trace.end)
    value = f'"tag {message.tag}, {table.number(message.bytes, "byte")}"'
    for event, moment, track in (
        ("StartLink", sent, message.sender),
        ("EndLink", received, message.receiver),
    ):
        yield moment, 2, _line(event, _time(moment), "Message", "run", f"n{track}", value, f"m{number}")
