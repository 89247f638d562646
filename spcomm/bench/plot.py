# SPDX-License-Identifier: MIT
"""Draws the figures of `spcomm bench figures`: a PNG each, and a page that shows them, in HTML or in Markdown."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from spcomm.bench.figures import (
    BYTES,
    FLOORS,
    RATE,
    Figure,
    Panel,
    PaperNumbers,
    Series,
    largest,
    long_bytes,
    paper_numbers,
    series,
)
from spcomm.bench.neighbours import DISTURBING
from spcomm.bench.results_file import Measurement, ResultsFile
from spcomm.bench.statistics import GOOD_SPREAD, summarise
from spcomm.bench.table import percent
from spcomm.text import counted

# Okabe and Ito's colours, which colour-blind readers can tell apart; a marker for each besides.
STYLES = {
    "spcomm": ("spcomm", "#0072B2", "o"),
    "spcomm_c": ("spcomm, C API", "#56B4E9", "s"),
    "openmpi": ("mpi4py, Open MPI", "#D55E00", "^"),
    "mpich": ("mpi4py, MPICH", "#E69F00", "v"),
    "spcomm_mpi_c": ("spcomm's MPI", "#0072B2", "o"),
    "openmpi_mpi_c": ("Open MPI, C", "#D55E00", "^"),
    "mpich_mpi_c": ("MPICH, C", "#E69F00", "v"),
    "multiprocessing": ("multiprocessing", "#009E73", "D"),
    "pyzmq": ("pyzmq", "#CC79A7", "P"),
    "c": ("plain C", "#777777", "x"),
}
OTHER = ("#000000", ".")  # colour and marker of a contender without a style
PAPER_MARKERS = "*Xdh"
PAPER_LINES = ("--", ":", "-.")
TITLE = "The papers' figures on this machine"
THINNED = "Points with fewer rounds than planned"
PANEL_INCHES, NOTE_COLUMNS, LEGEND_COLUMNS = 7.0, 95, 30


def write(folder: Path, figures: Sequence[Figure], found: ResultsFile) -> Path:
    """Write a PNG for each figure, and ``index.html``; return its path."""
    draw_all(folder, figures, found)
    page = folder / "index.html"
    page.write_text(html(figures, found), encoding="utf-8")
    return page


def draw_all(folder: Path, figures: Sequence[Figure], found: ResultsFile, prefix: str = "") -> None:
    """Write a PNG for each figure; `prefix` begins the names of the files."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    numbers = paper_numbers()
    for figure in figures:
        canvas = Canvas(figsize=(PANEL_INCHES * len(figure.panels), 4.2), dpi=80, layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.subplots(1, len(figure.panels), squeeze=False)[0]
        for panel, ax in zip(figure.panels, axes, strict=True):
            lines = series(figure, panel, found.measurements)
            draw(ax, panel, lines, numbers.get((figure.name, panel.y), []), found.measurements)
        canvas.suptitle(f"{figure.title}\n{figure.source}", fontsize=11)
        if figure.note:
            canvas.supxlabel(textwrap.fill(figure.note, NOTE_COLUMNS), fontsize=8, style="italic")
        save(canvas, folder / f"{prefix}{figure.name}.png")


def save(canvas: Any, path: Path) -> None:
    """Write a PNG with a palette, a third as large as matplotlib's own.

    An octree keeps the colours of lines; Pillow's default, the median cut, makes one of those of two contenders.
    """
    from PIL import Image

    canvas.canvas.draw()
    size = canvas.canvas.get_width_height()
    picture = Image.frombuffer("RGBA", size, bytes(canvas.canvas.buffer_rgba()))
    picture.convert("RGB").quantize(method=Image.Quantize.FASTOCTREE).save(path, optimize=True)


def draw(
    ax: Any,
    panel: Panel,
    lines: Sequence[Series],
    numbers: Sequence[PaperNumbers],
    found: Sequence[Measurement],
) -> None:
    for line in lines:
        name, colour, marker = STYLES.get(line.name, (line.name, *OTHER))
        if line.name == "c" and panel.operation in FLOORS:
            name = f"{name}, {FLOORS[panel.operation]}"
        ax.plot(line.x, line.y, marker=marker, color=colour, label=name, linewidth=1.4, markersize=5)
        ax.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
    for order, paper in enumerate(numbers):
        name = paper.label.replace(" µs", "\N{NO-BREAK SPACE}µs")
        look = {"color": "black", "label": textwrap.fill(name, LEGEND_COLUMNS)}
        if not paper.x:
            ax.axhline(paper.y[0], linestyle=PAPER_LINES[order % len(PAPER_LINES)], linewidth=1.2, **look)
        else:
            marker = PAPER_MARKERS[order % len(PAPER_MARKERS)]
            ax.plot(paper.x, paper.y, marker=marker, linestyle="--", linewidth=0.8, markersize=8, **look)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.xaxis.set_major_formatter(lambda value, _: label(value) if panel.x == BYTES else f"{value:g}")
    ax.set_xlabel("bytes of a message" if panel.x == BYTES else "nodes")
    ax.set_ylabel("MB/s" if panel.y == RATE else "µs")
    ax.set_title(subtitle(panel, found), fontsize=9)
    ax.grid(True, which="major", alpha=0.3)
    if lines or numbers:
        # Beside the lines, never over them.
        ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def subtitle(panel: Panel, found: Sequence[Measurement]) -> str:
    """Return what else the reader must know of the axes: the nodes, or the size."""
    parts = [panel.title] if panel.title else []
    if panel.x == BYTES:
        parts.append(f"{panel.nodes or largest(panel.operation, found)} nodes")
    elif size := long_bytes(panel, found):
        parts.append(f"{label(size)}B to each node" if panel.y == RATE else f"{size} bytes")
    return ", ".join(parts)


def label(size: float) -> str:
    """
    >>> label(8), label(4096), label(1 << 20)
    ('8', '4 Ki', '1 Mi')
    """
    for factor, unit in ((1 << 20, " Mi"), (1 << 10, " Ki")):
        if size >= factor:
            return f"{size / factor:g}{unit}"
    return f"{size:g}"


# ---- pages


def caption(figure: Figure) -> list[str]:
    """Return the sentences below a picture: the note, and where the paper's numbers stand."""
    known = paper_numbers()
    numbers = [one for panel in figure.panels for one in known.get((figure.name, panel.y), [])]
    sources = dict.fromkeys(f"{one.label}: {one.source}." for one in numbers)
    return [*([figure.note] if figure.note else []), *sources]


def introduction(found: ResultsFile) -> list[str]:
    """Return the paragraphs above the pictures."""
    machine = found.machine
    summaries = (summarise(one.samples) for one in found.measurements)
    judged = [one.is_good for one in summaries if one and one.is_good is not None]
    contenders = [
        STYLES[name][0] for name in STYLES if any(one.contender == name for one in found.measurements)
    ]
    paragraphs = [
        f"Measured on {found.date[:10]} by `spcomm bench figures`: {machine['cores']} cores,"
        f" {machine['system'].split()[0]}, Python {machine['python']}, spcomm {found.versions.get('spcomm')}."
        f" Shown: {'; '.join(contenders)}. Lines are medians, bands the smallest and the largest round; black is what"
        " the papers' texts say of their machines.",
        f"{sum(judged)} of {counted(len(judged), 'number')} repeat{'s' if sum(judged) == 1 else ''} within"
        f" {percent(GOOD_SPREAD)}, the thesis's rule. Read the others as orders of"
        " magnitude. Where there are more nodes than cores, nodes wait for their turn.",
    ]
    busy = machine.get("busy_with_others") or 0
    if busy > DISTURBING:
        paragraphs.append(f"Other programs kept {busy:.1f} cores busy meanwhile, so better repeat it.")
    if found.thinned:
        counts = Counter(rounds for *_, rounds in found.thinned)
        parts = [
            f"{points} {'has' if points == 1 else 'have'} {rounds or 'none'}"
            for rounds, points in sorted(counts.items(), reverse=True)
        ]
        paragraphs.append(
            f"Not all points have the {counted(found.planned_rounds, 'round')} that were planned:"
            f" {', '.join(parts)}. The end of this page names them."
        )
    if found.failures:
        paragraphs.append(
            f"{counted(len(found.failures), 'point')} failed; the end of this page has the reasons."
        )
    return paragraphs


def thinned(found: ResultsFile) -> list[str]:
    """Return lines on the points with fewer rounds than planned: by contender and rounds; then on each that failed."""
    groups: dict[tuple[str, int], list[str]] = {}
    for title, contender, rounds in found.thinned:
        groups.setdefault((contender, rounds), []).append(title)
    return [
        *(
            f"{styled(name)}, {counted(rounds, 'round') if rounds else 'not measured'}: {'; '.join(titles)}."
            for (name, rounds), titles in groups.items()
        ),
        *(f"{styled(name)}, failed: {title}: {reason}" for title, name, reason in found.failures),
    ]


def styled(contender: str) -> str:
    return STYLES[contender][0] if contender in STYLES else contender


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
img { max-width: 100%; }
figure { margin: 2.5rem 0; }
figcaption { font-size: 0.9rem; color: #444; }
"""


def html(figures: Sequence[Figure], found: ResultsFile) -> str:
    """Return the page that stands beside the pictures."""
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title><style>{STYLE}</style></head><body>',
        f"<h1>{TITLE}</h1>",
        *(f"<p>{escape(text).replace('`', '')}</p>" for text in introduction(found)),
    ]
    for figure in figures:
        alt = escape(f"{figure.title}: {figure.source}, measured here")
        parts += [
            f'<figure id="{figure.name}"><h2>{escape(figure.title)}</h2>',
            f'<img src="{figure.name}.png" alt="{alt}">',
            f"<figcaption>{escape(' '.join([f'{figure.source}.', *caption(figure)]))}</figcaption></figure>",
        ]
    if lines := thinned(found):
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        parts.append(f"<details><summary>{THINNED}</summary><ul>{items}</ul></details>")
    return "\n".join([*parts, "</body></html>", ""])


def markdown(figures: Sequence[Figure], found: ResultsFile, pictures: str) -> str:
    """Return the page of the documentation; `pictures` precedes the names of the files."""
    parts = []
    for figure in figures:
        parts += [f"## {figure.title}", f"![{figure.source}, measured here]({pictures}{figure.name}.png)"]
        parts += [" ".join([f"{figure.source}.", *caption(figure)])]
    if lines := thinned(found):
        parts += [f"## {THINNED}", *lines]
    return "\n\n".join([*introduction(found), *parts])
