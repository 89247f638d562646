# SPDX-License-Identifier: MIT
"""Draws the table of `--watch` with rich: lines of bytes for a terminal of a given size.

rich knows character widths and colours. Its tables take some milliseconds a line, four times a second; here columns
have fixed widths, and the two others divide the rest of the line.
"""

import os
import re
from collections.abc import Callable

from rich.cells import cell_len, set_cell_size
from rich.color import ColorSystem
from rich.style import Style

from spcomm.launch.supervise import watch
from spcomm.launch.supervise.watch import Row
from spcomm.text import counted, duration_text
from spcomm.trace.states import QUEUED, TERMINAL

# Rows, seconds since the run began, columns and lines of the terminal -> lines, each with its width.
Draw = Callable[[list[Row], float, tuple[int, int]], list[tuple[bytes, int]]]

_PLAIN, _DIM, _BOLD = Style(), Style(dim=True), Style(bold=True)
_STYLES = {
    watch.COMPUTES: Style(color=TERMINAL["computing"]),
    watch.WAITS: Style(color=TERMINAL["waiting"]),
    watch.POLLS: Style(color="magenta"),
    watch.QUEUES: Style(color=TERMINAL[QUEUED]),
    watch.STOPPED: Style(color="red"),
    watch.ENDED: _DIM,
}
_FAILED = Style(color="red")
_SPARE = 4  # lines of the terminal that stay free for the output of nodes, or a quarter of it
_WIDE, _MIDDLE = 110, 76  # columns from which bytes and messages are shown
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_GAP = "  "
_NUMBER = 8  # columns of a number, with its head


def drawing(colors: bool) -> Draw:
    """Return the drawing function, with colours or without."""
    many = "256color" in os.environ.get("TERM", "") or bool(os.environ.get("COLORTERM"))
    system = (ColorSystem.EIGHT_BIT if many else ColorSystem.STANDARD) if colors else None

    def draw(rows: "list[Row]", seconds: float, size: "tuple[int, int]") -> "list[tuple[bytes, int]]":
        columns, lines = size
        if lines < 2:  # too few even for a title and the cursor: each look would scroll
            return []
        width = max(1, columns - 1)  # in the last column a terminal may begin a new line
        room = lines - max(_SPARE, lines // 4) - 3  # the two lines above the nodes, and the cursor's
        shown = chosen(rows, room)
        found = [[(_title(rows, seconds), _BOLD)]]
        if shown:
            found += _table(shown, width)
        if 0 < len(shown) < len(rows):
            found.append([(f"and {len(rows) - len(shown)} more", _DIM)])
        return [_line(cells, width, system) for cells in found]

    return draw


def _line(cells: "list[tuple[str, Style]]", width: int, system: "ColorSystem | None") -> "tuple[bytes, int]":
    """Return as many of these texts as fit, and their width."""
    texts, left = [], width
    for text, style in cells:
        text = _cut(text, left)
        left -= cell_len(text)
        texts.append(style.render(text, color_system=system) if system is not None else text)
    return "".join(texts).encode("utf-8", "replace"), width - left


def chosen(rows: "list[Row]", room: int) -> "list[Row]":
    """Return the nodes shown in that many lines: the longest waits come first, then order by number."""
    if len(rows) <= room:
        return rows
    if room < 2:
        return []
    by_wait = sorted(
        rows, key=lambda row: (row.state != watch.WAITS, -row.seconds if row.state == watch.WAITS else 0)
    )
    return sorted(by_wait[: room - 1], key=lambda row: row.index)


def _title(rows: "list[Row]", seconds: float) -> str:
    return f"spcomm, {duration_text(seconds)}: {counted(len(rows), 'node')} ({watch.states_text(rows)})"


def _table(rows: "list[Row]", width: int) -> "list[list[tuple[str, Style]]]":
    """Return the head, and a line for each."""
    heads = ("sent/s", "recv/s") * (width >= _MIDDLE) + ("MB/s out", "MB/s in") * (width >= _WIDE)
    names = max(4, *(len(row.name) for row in rows))
    states = max(8, *(len(row.state) for row in rows))
    rest = max(0, width - names - states - 7 - 4 * len(_GAP) - len(heads) * (_NUMBER + len(_GAP)))
    widths = names, states, -7, rest * 3 // 5, rest - rest * 3 // 5, *(-_NUMBER for _head in heads)
    lines = [_aligned(("node", "state", "for", "operation", "line", *heads), widths, _DIM, _DIM)]
    for row in rows:
        sent, received, *moved = row.rates
        numbers = amount(sent), amount(received), *(amount(count / 1e6) for count in moved)
        style = _STYLES.get(row.state, _FAILED if row.state.endswith(")") else _PLAIN)
        cells = row.name, row.state, duration_text(row.seconds), _plain(row.call), _plain(row.place)
        lines.append(_aligned((*cells, *numbers[: len(heads)]), widths, _PLAIN, style))
    return lines


def _aligned(
    cells: "tuple[str, ...]", widths: "tuple[int, ...]", style: Style, second: Style
) -> "list[tuple[str, Style]]":
    """Pad each cell to its width; a negative width is flush right. The second one has a style of its own."""
    found = []
    for at, (text, width) in enumerate(zip(cells, widths, strict=True)):
        text = _cut(text, abs(width))
        blanks = " " * (abs(width) - cell_len(text))
        found.append((text + blanks if width > 0 else blanks + text, second if at == 1 else style))
        found.append((_GAP, _PLAIN))
    return found[:-1]


def _cut(text: str, width: int) -> str:
    """Cut a text to this width."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1) + "…" if width > 0 else ""


def amount(number: float) -> str:
    """Format in at most six characters; nothing for nothing."""
    if number < 0.05:
        return ""
    for unit in ("", "k", "M"):
        if number < (10000 if unit == "" else 1000):
            return f"{number:.{0 if number >= 10 else 1}f}{unit}"
        number /= 1000
    return f"{number:.0f}G"


def _plain(text: str) -> str:
    """Neutralize names of files and functions, which can hold any character, so that none moves the cursor."""
    return _CONTROL.sub("?", text)
