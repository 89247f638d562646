# SPDX-License-Identifier: MIT
"""The timeline and the communication matrix as pictures, by matplotlib, which is imported only here."""

import io
import os

from spcomm.trace import raster, summary, table
from spcomm.trace.errors import TraceError
from spcomm.trace.matrix import matrix as numbers
from spcomm.trace.model import Trace
from spcomm.trace.states import COLORS, QUEUED, STARTING

_INK = "#3a3a3a"
_GREY = "#7a7a7a"  # a contrast of 4.3 to white, and of 4.5 to the dark grey of Jupyter
_COLUMNS = 2400
_ARROW = {"arrowstyle": "-|>", "color": _INK, "lw": 0.6, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 6}
_ARROWS = 300  # more would hide the tracks that they connect


def timeline(trace: Trace, path: str, in_notebook: bool = False) -> None:
    """Draw a track per node, arrows for messages if they are few, and how many nodes compute.

    Parameters
    ----------
    trace
        The trace to draw.
    path
        The file to write; its ending gives the format: .png, .svg, .pdf.
    in_notebook
        Whether it is shown in a column of a notebook, light or dark: narrower, so that its letters are larger, and
        without a background.

    Raises
    ------
    TraceError
        There is no matplotlib.
    """
    figure = _figure((8.0 if in_notebook else 12.0, min(3.2 + 0.3 * len(trace.tracks), 40.0)))
    rows = min(max(0.3 * len(trace.tracks), 1.0), 36.0)
    curve, nodes = figure.subplots(2, 1, sharex=True, height_ratios=[0.7, rows])
    _curve(curve, trace)
    _tracks(nodes, trace)
    _arrows(nodes, trace)
    factor, unit = _unit(trace)
    nodes.set_xlim(trace.begin, max(trace.end, trace.begin + 1e-3))
    nodes.xaxis.set_major_formatter(lambda moment, _place: f"{moment / factor:g}")
    nodes.set_xlabel(unit)
    notes = [f"{name}: {value} {words}" for name, value, words in summary.gaps(trace) if value != "0"]
    figure.suptitle(summary.headline(trace), fontsize=11, x=0.01, ha="left")
    if notes:
        figure.supxlabel("; ".join(notes), fontsize=8, x=0.01, ha="left")
    if in_notebook:
        _fit_any_background(figure)
    _save(figure, path)


def matrix(trace: Trace, path: str) -> None:
    """Draw messages and bytes from each node to each.

    Parameters
    ----------
    trace
        The trace to draw.
    path
        The file to write, as for `timeline`.

    Raises
    ------
    TraceError
        There is no matplotlib.
    """
    figure = _figure((10.0, 4.8))
    counts, sizes = numbers(trace)
    for axes, cells, name in zip(figure.subplots(1, 2), (counts, sizes), ("messages", "bytes"), strict=True):
        shown = [[cell if cell else float("nan") for cell in row] for row in cells]
        image = axes.imshow(shown, cmap="cividis_r", vmin=0, interpolation="nearest")
        axes.set(title=name, xlabel="to node", ylabel="from node")
        axes.set_facecolor("#f4f4f4")
        figure.colorbar(image, ax=axes, shrink=0.8)
        for name_of_axis in (axes.xaxis, axes.yaxis):
            name_of_axis.get_major_locator().set_params(integer=True)
        if trace.nodes <= 8:
            _label(axes, cells, name)
    figure.suptitle(summary.headline(trace), fontsize=11, x=0.01, ha="left")
    _save(figure, path)


def _figure(size: "tuple[float, float]") -> "object":
    """A figure of its own: nothing of matplotlib's state is touched, no window is opened."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TraceError(
            f"--png draws with matplotlib, which this Python cannot import ({error}): pip install 'spcomm[plot]', or "
            "take --html, which needs nothing"
        ) from None
    return Figure(figsize=size, dpi=150, layout="constrained")


def _unit(trace: Trace) -> "tuple[float, str]":
    """The unit of the axis, and its microseconds."""
    units = ((1e6, "seconds"), (1e3, "milliseconds"))
    return next((found for found in units if trace.end >= found[0]), (1.0, "microseconds"))


def _save(figure: "object", path: str) -> None:
    ending = os.path.splitext(path)[1].lstrip(".")
    known = figure.canvas.get_supported_filetypes()
    if ending not in known:
        raise TraceError(f"--png cannot make {path}: it ends in none of .{', .'.join(sorted(known))}")
    from spcomm.trace.files import replace

    drawn = io.BytesIO()
    figure.savefig(drawn, format=ending)
    replace(path, lambda file: file.write(drawn.getvalue()), is_text=False)


def _fit_any_background(figure: "object") -> None:
    """Make it transparent, and its letters and axes of a grey that is readable on white and on black."""
    from matplotlib.text import Text

    figure.patch.set_alpha(0)
    for axes in figure.axes:
        axes.patch.set_alpha(0)
    for text in figure.findobj(Text):
        text.set_color(_GREY)
    for axes in figure.axes:
        axes.tick_params(colors=_GREY)
        axes.spines["bottom"].set_color(_GREY)


def _bare(axes: "object") -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, labelsize=8, colors=_INK)


def _curve(axes: "object", trace: Trace) -> None:
    found = trace.running()
    moments = [moment for moment, _count in found] + [trace.end]
    counts = [count for _moment, count in found]
    axes.fill_between(
        moments, [*counts, counts[-1]], step="post", color=COLORS["computing"], alpha=0.85, lw=0
    )
    axes.set_ylim(0, trace.nodes)
    axes.set_yticks([0, trace.nodes])
    axes.set_ylabel("nodes that\ncompute", fontsize=8, color=_INK)
    _bare(axes)


def _tracks(axes: "object", trace: Trace) -> None:
    for place, track in enumerate(trace.tracks):
        if trace.length <= 0:
            break
        if track.starting:
            span = (track.begin - track.starting, track.starting)
            axes.broken_barh([span], (place - 0.38, 0.76), facecolors=STARTING, lw=0)
        for state, found in raster.runs(trace, track, _COLUMNS).items():
            axes.broken_barh(found, (place - 0.38, 0.76), facecolors=COLORS[state], lw=0)
    for state, color in COLORS.items():
        if state != QUEUED or any(track.core_waits for track in trace.tracks):
            axes.broken_barh([], (0, 0), facecolors=color, label=state)
    if any(track.starting for track in trace.tracks):
        axes.broken_barh([], (0, 0), facecolors=STARTING, label="starting")
    step = max(1, len(trace.tracks) // 64)
    axes.set_yticks(range(0, len(trace.tracks), step), [f"node {t.name}" for t in trace.tracks[::step]])
    axes.set_ylim(len(trace.tracks) - 0.5, -0.5)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=5, frameon=False, fontsize=8, handlelength=1)
    _bare(axes)


def _arrows(axes: "object", trace: Trace) -> None:
    places = {track.number: place for place, track in enumerate(trace.tracks)}
    known = [m for m in trace.messages if m.sent is not None and m.received is not None]
    if len(known) > _ARROWS:
        axes.set_title(f"{len(known)} messages: too many to draw", fontsize=7, color=_INK, loc="left")
        return
    crossing = set(map(id, trace.crossing()))
    for message in known:
        ends = ((message.received, places[message.receiver]), (message.sent, places[message.sender]))
        style = {**_ARROW, "linestyle": "--"} if id(message) in crossing else _ARROW
        made = axes.annotate("", *ends, arrowprops=style, annotation_clip=False)
        made.arrow_patch.set_clip_path(axes.patch)  # of a part, messages from before it begin outside


def _label(axes: "object", cells: "list[list[int]]", name: str) -> None:
    most = max(map(max, cells))
    for source, row in enumerate(cells):
        for dest, cell in enumerate(row):
            if cell:
                words = str(cell) if name == "messages" else table.size(cell)
                color = "white" if cell > most / 2 else "black"
                axes.text(dest, source, words, ha="center", va="center", fontsize=7, color=color)
