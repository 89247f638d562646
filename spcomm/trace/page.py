# SPDX-License-Identifier: MIT
"""A trace as one HTML page that needs nothing else: no network, no other file. The page of a run that goes on has the
same parts, served by that run."""

import html
import json
import os

from spcomm.text import counted, ranks_text
from spcomm.trace import spans, summary, table
from spcomm.trace.matrix import matrix
from spcomm.trace.model import Message, Trace, Track

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page")
_SCRIPTS = ("data.js", "draw.js", "hover.js", "tables.js", "main.js")  # one scope, in this order
_LIVE_SCRIPTS = (*_SCRIPTS, "live.js")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_LINES = 8  # so many of those with most waiting are listed


def page(trace: Trace) -> str:
    """Make the page.

    Parameters
    ----------
    trace
        The trace to show.

    Returns
    -------
    str
        HTML. Names from the trace are only ever data in it, never markup.
    """
    return _html(
        f"{os.path.basename(trace.program)} on {counted(trace.nodes, 'node')}",
        content(trace),
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<style>{_file('page.css')}</style>",
        f"<script>\n{_script(_SCRIPTS)}\n</script>",
    )


def live(program: str, places: "list[int]", elsewhere: "list[int]") -> "dict[str, tuple[str, bytes]]":
    """Make the files of the page of a run that goes on: path → type and content. `live.Feed` has its data.

    `elsewhere`: the nodes on other machines, of which only the whole trace has the timeline.
    """
    title = f"{os.path.basename(program)} on {counted(len(places), 'node')}"
    text = _html(
        title,
        _nothing(program, places, elsewhere),
        "",
        '<link rel="stylesheet" href="page.css">',
        '<script src="page.js"></script>',
    )
    return {
        "/": ("text/html; charset=utf-8", text.encode()),
        "/page.css": ("text/css; charset=utf-8", _file("page.css").encode()),
        "/page.js": ("text/javascript; charset=utf-8", _script(_LIVE_SCRIPTS).encode()),
        "/favicon.ico": ("image/x-icon", b""),
    }


def _html(title: str, data: object, policy: str, style: str, script: str) -> str:
    parts = {
        "title": html.escape(title),
        "policy": policy,
        "style": style,
        "data": embedded(data),
        "script": script,
    }
    before, *pieces = _file("page.html").split("@@")
    return before + "".join(parts.get(piece, piece) for piece in pieces)


def _script(names: "tuple[str, ...]") -> str:
    text = "\n".join(_file(name) for name in names)
    return f'(() => {{\n"use strict";\n{text}\n}})();'


def _file(name: str) -> str:
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
        return file.read()


def embedded(value: object) -> str:
    """JSON that can stand within <script>: no character of it means anything to HTML, or ends a line of JavaScript."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def content(trace: Trace) -> "dict[str, object]":
    """Data for the scripts of the page. Times are whole nanoseconds from the beginning of the part shown.

    Things of one kind are columns, not rows: that is a third of the size, and JavaScript is fast with it.
    """
    texts = Texts()
    found = summary.summarize(trace)
    counts, sizes = matrix(trace)
    places = {track.number: at for at, track in enumerate(trace.tracks)}
    return {
        "program": trace.program,
        "headline": summary.headline(trace, with_program=False),
        "offset": _ns(trace, trace.begin, 0.0),
        "length": _ns(trace, trace.end),
        "nodes": trace.nodes,
        "boxes": trace.boxes,
        "tracks": [_track(trace, track, texts) for track in trace.tracks],
        "messages": _messages(trace, texts, places),
        "running": _running(trace),
        "facts": summary.facts(trace, found),
        "lost": sum(trace.overwritten),
        "lines": found.lines[:_LINES],
        "times": [_times(t) for t in (*found.nodes, *found.threads)],
        "traffic": [[t.sent, t.sent_bytes, t.received, t.received_bytes] for t in found.traffic],
        "counts": _sparse(counts),
        "sizes": _sparse(sizes),
        "texts": texts.known,
    }


def _nothing(program: str, places: "list[int]", elsewhere: "list[int]") -> "dict[str, object]":
    """The same of a run of which nothing is known yet."""
    lists = "tracks messages running facts lines times traffic counts sizes texts"
    return {
        "program": program,
        "headline": "",
        "offset": 0,
        "length": 0,
        "nodes": len(places),
        "boxes": max(places) + 1,
        "lost": 0,
        "elsewhere": ranks_text(elsewhere) if elsewhere else "",
        **{name: [] for name in lists.split()},
    }


def _times(times: summary.Times) -> list:
    parts = [times.computing, times.queued, times.waiting, times.transferring]
    return [times.name, times.life, *parts, table.shares(parts, times.life)]


class Texts:
    """Each name and line once; elsewhere are their numbers. -1: there is none."""

    def __init__(self) -> None:
        self.known: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: "str | None") -> int:
        if text is None:
            return -1
        found = self._numbers.setdefault(text, len(self.known))
        if found == len(self.known):
            self.known.append(text)
        return found


def _ns(trace: Trace, moment: float, begin: "float | None" = None) -> int:
    return round((moment - (trace.begin if begin is None else begin)) * 1000)


def rows_of(trace: Trace, track: Track, texts: Texts) -> "dict[str, list[list]]":
    """Rows of a track by kind, each of which begins with two moments."""
    return {
        "calls": [[_ns(trace, c.begin), _ns(trace, c.end), texts.number(c.name), texts.number(c.line), int(c.open),
                   -1 if c.cost is None else c.cost] for c in track.calls],
        "waits": [[_ns(trace, w.begin), _ns(trace, w.end), texts.number(w.line)] for w in track.waits],
        "regions": [[_ns(trace, r.begin), _ns(trace, r.end), texts.number(r.name)] for r in track.regions],
        "handling": [[_ns(trace, begin), _ns(trace, end)] for begin, end in _handling(track)],
        "queued": [[_ns(trace, begin), _ns(trace, end)] for begin, end in track.queued()],
    }  # fmt: skip


def _track(trace: Trace, track: Track, texts: Texts) -> "dict[str, object]":
    return {
        "name": track.name,
        "rank": track.rank,
        "thread": track.thread,
        "box": track.box,
        "begin": _ns(trace, track.begin),
        "end": _ns(trace, track.end),
        "starting": round(track.starting * 1000),
        "lost": 0 if track.thread else trace.overwritten[track.rank],
        **{kind: columns(rows) for kind, rows in rows_of(trace, track, texts).items()},
    }


def _handling(track: Track) -> "list[tuple[float, float]]":
    """Spans in which it computes within a call."""
    calls = spans.union((call.begin, call.end) for call in track.calls)
    return spans.without(calls, track.calling()) if track.handlers else []


def columns(rows: "list[list]") -> "list[list]":
    return [list(column) for column in zip(*rows, strict=True)]


def _messages(trace: Trace, texts: Texts, places: "dict[int, int]") -> "list[list]":
    """Sent, received (null: not known), from, to, tag, bytes, context, and the places of both tracks."""

    def row(message: Message) -> list:
        moments = [
            None if moment is None else _ns(trace, moment) for moment in (message.sent, message.received)
        ]
        context = texts.number(message.context)
        ends = [-1 if number is None else places[number] for number in (message.sender, message.receiver)]
        return [*moments, message.source, message.dest, message.tag, message.bytes, context, *ends]

    return columns([row(message) for message in trace.messages])


def _running(trace: Trace) -> "list[list]":
    return columns([[_ns(trace, moment), count] for moment, count in trace.running()])


def _sparse(numbers: "list[list[int]]") -> "list[list[int]]":
    """[from, to, number] of those that are not 0: of a thousand nodes, few pairs talk."""
    return [[a, b, n] for a, row in enumerate(numbers) for b, n in enumerate(row) if n]
