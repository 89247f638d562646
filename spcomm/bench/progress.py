# SPDX-License-Identifier: MIT
"""Progress of a measurement on standard error: a bar and the time left, at a terminal; nothing elsewhere.

With rich it is a bar of rich's, without it a line of text with the same words.
"""

import importlib.util
import shutil
import sys
from collections.abc import Callable
from time import monotonic
from typing import Any, TextIO

WIDTH = 20  # characters of the plain bar
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
    rich : whether to use rich; None: if it is installed.
    """

    def __init__(
        self,
        estimate_s: float,
        stream: TextIO | None = None,
        clock: Callable[[], float] = monotonic,
        rich: bool | None = None,
    ) -> None:
        self.estimate_s, self.clock = estimate_s, clock
        self.stream = stream or sys.stderr
        self.is_terminal = self.stream.isatty()
        self.begin = clock()
        use_rich = importlib.util.find_spec("rich") is not None if rich is None else rich
        self.bar = rich_bar(self.stream) if self.is_terminal and use_rich else None

    def __call__(self, text: str, share: float) -> None:
        if not self.is_terminal:
            return
        left = f"about {about(self.left_s(share))} left"
        if self.bar:
            bar, task = self.bar
            bar.update(task, completed=share, description=text, left=left)
            bar.refresh()
            return
        done = round(share * WIDTH)
        line = f"[{'#' * done}{'.' * (WIDTH - done)}] {share:4.0%}, {left}: {text}"
        columns = shutil.get_terminal_size().columns
        print(f"\r\x1b[K{line[: columns - 1]}", end="", file=self.stream, flush=True)

    def left_s(self, share: float) -> float:
        """Return the seconds left: by the estimate at first, then by the time that the share took."""
        spent = self.clock() - self.begin
        whole = spent / share if share >= TRUSTED else max(self.estimate_s, spent)
        return max(0.0, whole - spent)

    def clear(self) -> None:
        """Remove it from the terminal."""
        if self.bar:
            self.bar[0].stop()
        elif self.is_terminal:
            print("\r\x1b[K", end="", file=self.stream, flush=True)


def rich_bar(stream: TextIO) -> tuple[Any, Any]:
    """Return rich's progress and its task."""
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[left]}: {task.description}"))
    bar = Bar(*columns, console=Console(file=stream, force_terminal=True), transient=True, auto_refresh=False)
    task = bar.add_task("", total=1.0, left="")
    bar.start()
    return bar, task
