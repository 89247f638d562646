# SPDX-License-Identifier: MIT
"""LiveView: the activity of the nodes during a call as HTML, for `%%spcomm --watch`: a row for each node, with its
state, its messages per second and its timeline so far.

The HTML has no script, and goes to the front end as any output does. So it needs no port, and appears wherever cells
do, also when the kernel is on another machine. The timeline is a raster, and so the size of a picture does not depend
on how long the call takes: when the raster is full, two columns become one.
"""

import base64
import html
import io
import time
from typing import TYPE_CHECKING

import numpy as np

from spcomm.launch.supervise import watch
from spcomm.launch.supervise.watch_table import amount, chosen
from spcomm.text import counted, duration_text
from spcomm.trace.live import Feed
from spcomm.trace.states import COLORS, QUEUED

try:
    from PIL import Image
except ImportError as error:
    raise ImportError(f"watch needs {error.name}: pip install 'spcomm[notebook]' installs it") from None

if TYPE_CHECKING:
    from collections.abc import Callable

    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.local.run_processes import RunProcesses
    from spcomm.launch.supervise.watch import Row

_COLUMNS = 512
_FIRST_STEP_US = 1000.0  # of a column, at first
_HEIGHT = 16  # pixels of a bar: the least share that is visible is a sixteenth
_MOST_ROWS = 32  # more nodes than a screen has lines
_BYTES_PER_S = 200_000  # Jupyter's server drops messages beyond a megabyte a second
_STATES = ("transferring", "waiting", QUEUED, "computing")  # as in `Feed.shares`
_FROM_BELOW = (3, 0, 2, 1)  # the order of the states in a bar
_DOTS = {watch.COMPUTES: "computing", watch.POLLS: "computing", watch.WAITS: "waiting"}
_DOTS.update({watch.SLEEPS: "computing", watch.QUEUES: QUEUED})
_CELL = "text-align:left;padding:1px 8px;white-space:nowrap"


class Raster:
    """The parts of time that each node spent in each state, in columns of equal length."""

    def __init__(self, nodes: int) -> None:
        self._step_us = _FIRST_STEP_US
        self._cells = np.zeros((nodes, _COLUMNS, len(_STATES)))  # µs
        self._end_us = 0.0

    def add(self, node: int, low: float, high: float, shares: "list[float]") -> None:
        """Add a span of time, in µs, of which a node spent these shares in the states."""
        self._end_us = max(self._end_us, high)
        while self._end_us > _COLUMNS * self._step_us:
            self._step_us *= 2
            pairs = self._cells.reshape(len(self._cells), _COLUMNS // 2, 2, len(_STATES)).sum(axis=2)
            self._cells = np.concatenate([pairs, np.zeros_like(pairs)], axis=1)
        edges = self._step_us * np.arange(int(low / self._step_us), int(np.ceil(high / self._step_us)) + 1)
        parts = np.diff(np.clip(edges, low, high))
        first = int(low / self._step_us)
        self._cells[node, first : first + len(parts)] += parts[:, None] * np.array(shares)

    def picture(self, node: int) -> str:
        """Return the bar of a node as a PNG, in base64; it reaches to the end of the time so far."""
        used = max(1, int(np.ceil(self._end_us / self._step_us)))
        tops = np.cumsum(self._cells[node, :used, _FROM_BELOW] / self._step_us, axis=0)  # state, column
        heights = np.round(tops * _HEIGHT)
        levels = np.arange(_HEIGHT - 1, -1, -1)[:, None] + 0.5  # the picture's first line is on top
        pixels = np.zeros((_HEIGHT, used), np.uint8)
        for number in range(len(_FROM_BELOW), 0, -1):
            pixels[levels < heights[number - 1]] = number
        image = Image.fromarray(pixels)
        colors = [COLORS[_STATES[state]] for state in _FROM_BELOW]
        image.putpalette(b"\0\0\0" + b"".join(bytes.fromhex(color[1:]) for color in colors))
        found = io.BytesIO()
        image.save(found, "PNG", transparency=0)
        return base64.b64encode(found.getvalue()).decode()

    @property
    def seconds(self) -> float:
        """The length of the time so far."""
        return self._end_us / 1e6


class LiveView(watch.Watch):
    """Hands the HTML to a function, four times a second or less often."""

    def __init__(self, run_processes: "RunProcesses", group: "Group", show: "Callable[[str], None]") -> None:
        super().__init__(run_processes)
        self._show = show
        places = list(group.places) or [0] * group.size
        self._here = {
            rank: segment.fd for rank in range(group.size) if (segment := group.segment(rank)).fd >= 0
        }
        self._feed = Feed(self._here, places)
        self._raster = Raster(group.size)
        self._next_s = 0.0

    def stop(self) -> str:
        """Show the nodes once more: all of them are back."""
        now = time.monotonic()
        self._next_s = 0.0
        self.show(self.rows(now), now - self._begun)
        return super().stop()

    def show(self, rows: "list[Row]", seconds: float) -> None:
        self._feed.look(self._ended)
        for rank, spans in self._feed.shares.items():
            for low, high, shares in spans:
                self._raster.add(rank, low, high, shares)
        if seconds >= self._next_s:
            text = self.html(rows, seconds)
            self._next_s = seconds + len(text) / _BYTES_PER_S
            self._show(text)

    def html(self, rows: "list[Row]", seconds: float) -> str:
        """Draw the nodes, that many seconds after the call began."""
        shown = chosen(rows, _MOST_ROWS)
        states = watch.states_text(rows)
        sent = sum(row.rates[0] for row in rows)
        title = f"{duration_text(seconds)}: {counted(len(rows), 'node')} ({states}), {amount(sent) or 0} messages/s"
        legend = "".join(f"{_dot(state)}{state} " for state in COLORS)
        heads = (
            "node",
            f"timeline, {duration_text(self._raster.seconds)}",
            "state",
            "for",
            "operation",
            "line",
        )
        cells = "".join(f'<th style="{_CELL}">{head}</th>' for head in (*heads, "sent/s", "received/s"))
        lines = [f"<tr>{cells}</tr>", *map(self._line, shown)]
        more = f"<div>and {len(rows) - len(shown)} more</div>" if len(shown) < len(rows) else ""
        return (
            f'<div class="spcomm-watch"><div>{html.escape(title)}</div><div>{legend}</div>'
            f'<table style="table-layout:auto;width:100%;border-collapse:collapse">{"".join(lines)}</table>{more}</div>'
        )

    def _line(self, row: "Row") -> str:
        sent, received, *_bytes = row.rates
        texts = (
            row.name,
            row.state,
            duration_text(row.seconds),
            row.call,
            row.place,
            amount(sent),
            amount(received),
        )
        name, state, *rest = [html.escape(text) for text in texts]
        cells = [name, self._bar(row.index), f"{_dot(_DOTS.get(row.state, ''))}{state}", *rest]
        styles = [_CELL, f"{_CELL};width:50%", *[_CELL] * (len(cells) - 2)]
        return (
            "<tr>"
            + "".join(f'<td style="{s}">{cell}</td>' for s, cell in zip(styles, cells, strict=True))
            + "</tr>"
        )

    def _bar(self, node: int) -> str:
        if node not in self._here:
            return "comes at the end"  # the node is on another machine
        style = "width:100%;max-width:none;height:1.2em;margin:0;display:block;image-rendering:pixelated"
        png = self._raster.picture(node)
        return f'<img alt="timeline of node {node}" style="{style}" src="data:image/png;base64,{png}">'


def _dot(state: str) -> str:
    color = COLORS.get(state, "transparent")
    return f'<span style="display:inline-block;width:0.7em;height:0.7em;margin-right:4px;background:{color}"></span>'
