# SPDX-License-Identifier: MIT
"""Display of lessons and results: in colours where there is a terminal and rich, else as plain text."""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence

from spcomm.text import aligned

_BAR = 24  # columns of the progress bar
_WIDTH = 100  # of a lesson: longer lines are hard to read
# A message may contain a program's output, which must not steer the terminal.
_CONTROL = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def page(plain: bool = False) -> "Page":
    """The text, in the encoding of stdout."""
    if plain or not is_shown() or os.environ.get("TERM") == "dumb":
        return Page()
    try:
        return RichPage()
    except ImportError:
        return Page()


def is_shown() -> bool:
    """Whether stdout is a terminal; it may have been closed."""
    return sys.stdout is not None and sys.stdout.isatty()


class Page:
    """Plain text."""

    def say(self, text: str, style: str = "") -> None:
        """Print a line, or several; at a terminal none is broken within a word."""
        print(_broken(clean(text)), flush=True)

    def rule(self, title: str) -> None:
        """Begin something new."""
        self.say(f"\n-- {title}")

    def lesson(self, text: str) -> None:
        """Show Markdown."""
        self.say(_plainer(text))

    def bar(self, done: int, total: int) -> None:
        """A learner's progress."""
        full = _BAR * done // max(total, 1)
        self.say(f"[{'#' * full}{'-' * (_BAR - full)}] {done} of {total}")

    def case(self, name: str, passed: bool) -> None:
        """One run of a check."""
        self.say(f"  {'passed' if passed else 'failed'}  {name}")

    def code(self, text: str) -> None:
        """Show a program."""
        print(clean(text).rstrip("\n"), flush=True)

    def rows(self, rows: "Sequence[tuple[str, str, str]]") -> None:
        """A table: a mark, a name, a text."""
        width = max((len(name) for _mark, name, _text in rows), default=0)
        for mark, name, text in rows:
            self.say(f"{mark:<7} {name:<{width}}  {text}")


class RichPage(Page):
    """Colours, and lessons as they are meant to look."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False, soft_wrap=False)

    def say(self, text: str, style: str = "") -> None:
        self._console.print(_broken(clean(text)), style=style or None, markup=False, soft_wrap=True)

    def rule(self, title: str) -> None:
        from rich.text import Text

        self._console.print()
        self._console.rule(Text(clean(title), style="bold"), align="left")

    def lesson(self, text: str) -> None:
        from rich.markdown import Markdown

        self._console.print(Markdown(clean(text)), width=min(_WIDTH, self._console.width))

    def bar(self, done: int, total: int) -> None:
        from rich.text import Text

        full = _BAR * done // max(total, 1)
        self._console.print(
            Text("[")
            + Text("#" * full, "green")
            + Text("-" * (_BAR - full), "dim")
            + Text(f"] {done} of {total}")
        )

    def case(self, name: str, passed: bool) -> None:
        from rich.text import Text

        mark = Text("passed", "green") if passed else Text("failed", "bold red")
        self._console.print(Text("  ") + mark + Text(f"  {clean(name)}"), soft_wrap=True)

    def code(self, text: str) -> None:
        from rich.syntax import Syntax

        self._console.print(Syntax(clean(text), "python", background_color="default"), soft_wrap=True)


def clean(text: str) -> str:
    """Return the text without characters that would steer a terminal."""
    return text.translate(_CONTROL)


def _broken(text: str) -> str:
    """Return the text wrapped for a terminal. Columns, indented lines and paths stay unchanged."""
    if not is_shown():
        return text
    width = shutil.get_terminal_size().columns - 1
    lines = []
    for line in text.split("\n"):
        if len(line) <= width or line.startswith("  "):
            lines.append(line)
        else:
            lines += textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def _plainer(text: str) -> str:
    """Markdown that is read as it stands: programs and tables are set off by blanks, headings by their place alone."""
    lines, inside, table = [], False, []
    for line in [*text.rstrip().splitlines(), ""]:
        if line.startswith("|") and not inside:
            table.append([cell.strip() for cell in line.strip().strip("|").split("|")])
            continue
        lines += _columns(table)
        table = []
        if line.lstrip().startswith("```"):
            inside = not inside
        elif inside:
            lines.append(f"    {line}".rstrip())
        else:
            lines.append(re.sub(r"^#+\s+", "", line))
    return "\n".join(lines[:-1])


def _columns(rows: "list[list[str]]") -> "list[str]":
    """The rows of a table, without an empty heading and without the line below it."""
    kept = [row for row in rows if any(cell.strip(":-") for cell in row)]
    return aligned(kept, left=None, indent="    ", gap="   ").split("\n")[:-1]
