# SPDX-License-Identifier: MIT
"""Pictures of a fit: fitted over measured times, and the residuals by size and by nodes, one picture a transport."""

from pathlib import Path
from typing import Any

from spcomm.model import ModelError, optional, terms
from spcomm.model.loggp import Fit
from spcomm.model.measured import Case, Measurements
from spcomm.model.predict import predict

WIDTH, HEIGHT, DPI = 11.0, 4.0, 110


def draw(folder: str, measured: Measurements, fitted: Fit) -> list[str]:
    """Draw a picture for each transport into a folder; return the paths."""
    figure_module = optional("matplotlib.figure")
    paths = []
    for transport in fitted.transports:
        points = residuals(measured, fitted, transport)
        figure = figure_module.Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        compared, by_size, by_nodes = figure.subplots(1, 3)
        for operation in terms.OPERATIONS:
            group = [point for point in points if point[0].operation == operation]
            if group:
                chosen, times, models = zip(*group, strict=True)
                ratios = [time / model for time, model in zip(times, models, strict=True)]
                compared.plot([t / 1e3 for t in times], [m / 1e3 for m in models], "o", ms=3, label=operation)
                by_size.plot([max(case.size, 1) for case in chosen], ratios, "o", ms=3)
                by_nodes.plot([case.nodes for case in chosen], ratios, "o", ms=3)
        ends = [min(t for _, t, _ in points) / 1e3, max(t for _, t, _ in points) / 1e3]
        compared.plot(ends, ends, color="grey", lw=0.8)
        label(compared, "measured, µs", "fitted, µs")
        label(by_size, "bytes", "measured / fitted")
        label(by_nodes, "nodes", "measured / fitted")
        for axes in (by_size, by_nodes):
            axes.axhline(1, color="grey", lw=0.8)
        compared.legend(fontsize=7)
        figure.suptitle(f"{transport}: {len(points)} cases")
        paths.append(save(figure, folder, f"fit-{transport}.png"))
    return paths


def residuals(measured: Measurements, fitted: Fit, transport: str) -> list[tuple[Case, float, float]]:
    """Return cases with their measured times and those of the terms, in nanoseconds."""
    found = []
    for case, times in measured.times.items():
        plain = case.transport == transport and not case.direct and not case.encrypted
        if plain and case.operation in terms.OPERATIONS:
            found.append((case, times.time, predict(fitted, case).terms_ns))
    return found


def label(axes: Any, x: str, y: str) -> None:
    axes.set(xlabel=x, ylabel=y, xscale="log", yscale="log")
    axes.grid(alpha=0.3)


def save(figure: Any, folder: str, name: str) -> str:
    """Write a picture into a folder, which is made; return its path."""
    path = Path(folder, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=DPI)
    except OSError as error:
        raise ModelError(f"cannot write {str(path)!r}: {error.strerror}") from error
    return str(path)
