# SPDX-License-Identifier: MIT
"""Progress of a measurement on standard error: a bar and the time left, at a terminal; nothing elsewhere."""

import sys
from collections.abc import Callable
from time import monotonic
from typing import Any, TextIO

BAR_COLUMNS = 12
TRUSTED = 0.1  # share of the work from which the time that it took says more than the estimate


def about(seconds: float) -> str:
    """Format a duration that is an estimate.

    >>> about(3), about(42), about(100), about(170), about(3000)
    ('5 s', '40 s', '1.5 minutes', '3 minutes', '50 minutes')
    """
    if seconds < 90:
        return f"{max(5, round(seconds / 5) * 5)} s"
    return f"{round(seconds / 30) / 2:g} minutes"


class Progress:
    """Progress bar: call it with a text and the share of the work that is done.

    Parameters
    ----------
    estimate_s : what the whole is expected to take.
    stream : where to write; nothing is written unless it is a terminal.
    clock : returns seconds.
    """

    def __init__(
        self, estimate_s: float, stream: TextIO | None = None, clock: Callable[[], float] = monotonic
    ) -> None:
        self.estimate_s, self.clock = estimate_s, clock
        self.begin = clock()
        stream = stream or sys.stderr
        self.bar = rich_bar(stream) if stream.isatty() else None

    def __call__(self, text: str, share: float) -> None:
        if self.bar:
            bar, task = self.bar
            left = f"about {about(self.left_s(share))} left"
            bar.update(task, completed=share, description=text, left=left)
            bar.refresh()

    def left_s(self, share: float) -> float:
        """Return the seconds left: by the estimate at first, then by the time that the share took."""
        spent = self.clock() - self.begin
        whole = spent / share if share >= TRUSTED else max(self.estimate_s, spent)
        return max(0.0, whole - spent)

    def clear(self) -> None:
        """Remove it from the terminal."""
        if self.bar:
            self.bar[0].stop()


def rich_bar(stream: TextIO) -> tuple[Any, Any]:
    """Return rich's progress and its task."""
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    console = Console(file=stream, force_terminal=True)
    # The bar stays, and the text is cut where there are too few columns for both.
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    text = TextColumn("{task.fields[left]}: {task.description}", table_column=rest, markup=False)
    columns = (BarColumn(BAR_COLUMNS), TaskProgressColumn(), text)
    bar = Bar(*columns, console=console, transient=True, auto_refresh=False, expand=True)
    task = bar.add_task("", total=1.0, left="")
    bar.start()
    return bar, task
