# SPDX-License-Identifier: MIT
"""Figures 12 to 15 of the SCI thesis, redrawn from its equations.

Its text has the fitted components and the printed crossovers, but not the measured points of figures 12 and 13; those
are drawn by the equations alone.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from spcomm.model import optional, sci
from spcomm.model.fit_figures import save
from spcomm.model.sci import Components, Torus

ENHANCED = 0.5  # the switching delay of figure 15, as a share of that of figure 14
SIZES = range(64, 1025, 16)
TOTALS = range(4, 1001)
RING = 6  # nodes, of the validation by message size


def draw(folder: str, components: Components) -> list[str]:
    """Draw the figures into a folder; return the paths."""
    enhanced = replace(components, switching_ns=components.switching_ns * ENHANCED)
    return [
        save(figure_12(components), folder, "sci-12.png"),
        save(figure_13(components), folder, "sci-13.png"),
        save(comparison(components, "Figure 14: current system"), folder, "sci-14.png"),
        save(comparison(enhanced, "Figure 15: enhanced system"), folder, "sci-15.png"),
    ]


def empty(title: str, columns: int) -> tuple[Any, Any]:
    """Return a figure and its axes in one row."""
    figure = optional("matplotlib.figure").Figure(figsize=(5.0 * columns, 3.8), layout="constrained")
    figure.suptitle(title)
    return figure, figure.subplots(1, columns)


def figure_12(components: Components) -> Any:
    """Components over the size of a message."""
    figure, axes = empty("Figure 12: latency components", 1)
    axes.plot(SIZES, [components.overhead(size) for size in SIZES], label="overhead")
    for name in ("switching", "forwarding", "propagation"):
        axes.plot(SIZES, [getattr(components, f"{name}_ns")] * len(SIZES), label=name)
    axes.set(xlabel="bytes", ylabel="ns", yscale="log")
    axes.legend()
    return figure


def figure_13(components: Components) -> Any:
    """A message over three hops by size, and a message of 64 bytes over one to four hops: equations 21 to 25."""
    figure, (by_size, by_hops) = empty("Figure 13: paths of the validation", 2)
    ring = Torus((float(RING),))
    by_size.plot(SIZES, [ring.point_to_point([3], components, size) / 1e3 for size in SIZES])
    by_size.set(xlabel="bytes", ylabel="µs", title="three hops in a ring of 6")
    hops = range(1, 5)
    by_hops.plot(hops, [ring.point_to_point([count], components) / 1e3 for count in hops], "o-")
    by_hops.set(xlabel="hops", title="64 bytes", xticks=list(hops))
    return figure


def comparison(components: Components, title: str) -> Any:
    """Average latency and multi-unicast total by the number of nodes, with the crossovers."""
    figure, (average, total) = empty(title, 2)
    curves(average, lambda torus: torus.average_latency(components) / 1e3)
    curves(total, lambda torus: torus.multi_unicast(components) / 1e3)
    for dimensions in range(1, sci.MOST_DIMENSIONS):
        found = sci.crossover(dimensions, components)
        if found is not None and found <= TOTALS[-1]:
            for axes in (average, total):
                axes.axvline(found, color="grey", lw=0.8, ls=":")
            average.annotate(
                f"{found:.4g}", (found, 0.97), xycoords=("data", "axes fraction"), fontsize=8, va="top"
            )
    average.set(xlabel="nodes", ylabel="average latency, µs", xscale="log")
    total.set(xlabel="nodes", ylabel="multi-unicast total, µs", xscale="log", yscale="log")
    average.legend()
    return figure


def curves(axes: Any, latency: Callable[[Torus], float]) -> None:
    """Plot a line for each number of dimensions."""
    for dimensions in range(1, sci.MOST_DIMENSIONS + 1):
        axes.plot(TOTALS, [latency(Torus.of(n, dimensions)) for n in TOTALS], label=f"{dimensions}D")
