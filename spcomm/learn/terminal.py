# SPDX-License-Identifier: MIT
"""Display of lessons and results: a screen or lines in colours where there is a terminal, else plain text.

rich draws, and is imported late: notebooks and pipes need none of it.
"""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from spcomm.text import aligned, counted

_BAR = 24  # columns of the progress bar
_WIDTH = 100  # of a lesson: longer lines are hard to read
_PARTS = ("lesson", "hints", "check", "answer")
_FOOT = 3  # lines of a screen below the document
# A message may contain a program's output, which must not steer the terminal.
_CONTROL = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def page(plain: bool = False) -> "Page":
    """Lines of text, in the encoding of stdout."""
    is_simple = not is_shown() or os.environ.get("TERM", "dumb") == "dumb"
    return Page() if plain or is_simple else RichPage()


def is_shown() -> bool:
    """Whether stdout is a terminal; it may have been closed."""
    return sys.stdout is not None and sys.stdout.isatty()


class Page:
    """Plain text."""

    _has_clock = False

    def whole_screen(self, _keys: str) -> "Page":
        """Return a page that has the whole terminal, and shows the keys below; this one, if it is plain."""
        return self

    def part(self, name: str) -> None:
        """Begin a part of the document: "lesson", "hints", "check", "answer". It and later ones are replaced."""

    def keys(self, text: str) -> None:
        """Show the keys."""
        self.say(text, "dim")

    def remind(self, title: str, text: str) -> None:
        """Show again what was shown before, if it is not there any more."""

    def open_at_start(self) -> None:
        """Show the document from its beginning, until a key or the learner's save asks for something else."""

    def follow(self) -> None:
        """Show the end of the document from now on."""

    def note(self, text: str, style: str) -> None:
        """Tell a reader who is further up what has come below."""

    def clock(self, seconds: "int | None") -> None:
        """Show how long a check has been running, at a terminal; None: it is over."""
        if not is_shown() or (not seconds and not self._has_clock):
            return
        self._has_clock = seconds is not None
        text = f"  {seconds} s" if seconds is not None else ""
        print(f"\r{text:<10}\r", end="", flush=True)

    def scroll(self, _key: str) -> bool:
        """Move to another place of the document. False: this is no key for that."""
        return False

    def refresh(self) -> None:
        """The size of the terminal may have changed."""

    def resume(self) -> None:
        """Others may have written to the terminal."""

    def close(self) -> None:
        """Leave the cursor at the begin of a line."""

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

        self._console = Console(highlight=False)

    def whole_screen(self, keys: str) -> "Page":
        return Screen(keys)

    def say(self, text: str, style: str = "") -> None:
        from rich.text import Text

        self._show(Text(self._fitted(clean(text)), style))

    def rule(self, title: str) -> None:
        from rich.rule import Rule
        from rich.text import Text

        self._show(Text(""))
        self._show(Rule(Text(clean(title), "bold"), align="left"))

    def lesson(self, text: str) -> None:
        from rich.markdown import Markdown

        self._show(Markdown(clean(text)), _WIDTH)

    def bar(self, done: int, total: int) -> None:
        self._show(_bar(done, total))

    def case(self, name: str, passed: bool) -> None:
        from rich.text import Text

        mark = Text("passed", "green") if passed else Text("failed", "bold red")
        self._show(Text("  ") + mark + Text(f"  {clean(name)}"))

    def code(self, text: str) -> None:
        from rich.syntax import Syntax

        self._show(Syntax(clean(text), "python", background_color="default", word_wrap=True))

    def _show(self, content: "Any", most_columns: "int | None" = None) -> None:
        """Print what rich can print. Lines are not broken where they are to be copied."""
        if most_columns is None:
            self._console.print(content, soft_wrap=True)
        else:
            self._console.print(content, width=min(most_columns, self._console.width))

    def _fitted(self, text: str) -> str:
        return _broken(text)


class Screen(RichPage):
    """The whole terminal: a window on a document, how far a learner has come, and the keys.

    The document has parts. The window opens at its beginning, then follows its end; keys move it (`scroll`). Nothing of
    the terminal is changed: no other screen, no hidden cursor; what was there scrolls away above.
    """

    def __init__(self, keys: str) -> None:
        super().__init__()
        self._keys = keys
        self._parts: dict[str, list[tuple[Any, int | None]]] = {"lesson": []}
        self._lines: dict[str, list[str]] = {"lesson": []}  # the parts, drawn for this width
        self._size = os.terminal_size((0, 0))
        self._hidden = 0  # lines of the document below the screen
        self._is_at_start = False  # the window stays at the first line
        self._clock = ""
        self._note: tuple[str, str] = ("", "")  # what has come below the window, and its style
        self._done = self._total = 0

    def part(self, name: str) -> None:
        for later in [known for known in self._parts if _PARTS.index(known) >= _PARTS.index(name)]:
            del self._parts[later], self._lines[later]
        self._parts[name], self._lines[name] = [], []
        self._note = ("", "")
        self._hidden = 0

    def open_at_start(self) -> None:
        self._is_at_start = True

    def follow(self) -> None:
        self._is_at_start, self._hidden = False, 0

    def note(self, text: str, style: str) -> None:
        self._note = (text, style)
        self._draw()

    def bar(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        self._draw()

    def keys(self, text: str) -> None:
        pass  # they are always there

    def remind(self, title: str, text: str) -> None:
        self.say(title, "bold")
        self.lesson(text)

    def clock(self, seconds: "int | None") -> None:
        clock = "" if seconds is None else f"  checking, {seconds} s"
        if clock == self._clock:
            return
        self._clock = clock
        self._draw()

    def scroll(self, key: str) -> bool:
        page = max(self._room() - 2, 1)  # its first and its last line may be covered
        steps = {"up": 1, "down": -1, "page up": page, "page down": -page, " ": -page, "end": -self._hidden}
        is_home = key in ("home", "t")
        if key not in steps and not is_home:
            return False
        self._is_at_start = is_home
        self._hidden += steps.get(key, 0)
        self._draw()
        return True

    def refresh(self) -> None:
        if _size() != self._size:
            self._draw()

    def resume(self) -> None:
        self._size = os.terminal_size((0, 0))
        self._draw()

    def close(self) -> None:
        self._write("\n")

    def _show(self, content: "Any", most_columns: "int | None" = None) -> None:
        name = next(reversed(self._parts))
        self._parts[name].append((content, most_columns))
        drawn = self._drawn(content, most_columns)
        self._lines[name] += drawn
        self._hidden += len(drawn) if self._hidden else 0  # what is being read stays where it is
        self._draw()

    def _fitted(self, text: str) -> str:
        return text

    def _drawn(self, content: "Any", most_columns: "int | None") -> "list[str]":
        """Return lines, none of which is as wide as the terminal: the cursor would go on to the next one."""
        self._console.width = self._columns()  # rich would believe COLUMNS
        width = min(most_columns or self._columns(), self._columns())
        with self._console.capture() as capture:
            self._console.print(content, width=width, overflow="fold")
        return capture.get().split("\n")[:-1]

    def _columns(self) -> int:
        return max(_size().columns - 1, 1)

    def _room(self) -> int:
        """The number of lines of the document on the screen."""
        return max(_size().lines - _FOOT, 1)

    def _length(self) -> int:
        return sum(map(len, self._lines.values()))

    def _draw(self) -> None:
        size, before = _size(), self._size
        if size.columns != before.columns:
            for name, parts in self._parts.items():
                self._lines[name] = [line for content, most in parts for line in self._drawn(content, most)]
        self._size = size
        most = max(0, self._length() - self._room())
        self._hidden = most if self._is_at_start else max(0, min(self._hidden, most))
        lines = self._window() + self._foot()
        text = "\x1b[H" + "\x1b[K\n".join(lines) + "\x1b[K\x1b[J"
        self._write(text if before.lines else "\n" * size.lines + text)

    def _window(self) -> "list[str]":
        """The part of the document that is shown."""
        room, end = self._room(), self._length() - self._hidden
        text = [line for lines in self._lines.values() for line in lines]
        shown = text[max(end - room, 0) : end]
        if end > room > 1:
            shown[0] = self._faint(f"-- {counted(end - room + 1, 'line')} above: Up, Page Up, t --")
        if self._hidden and room > 2:
            shown[-1] = self._faint(f"-- {counted(self._hidden + 1, 'line')} below: Down, Space, End --")
        return shown + [""] * (room - len(shown))

    def _foot(self) -> "list[str]":
        from rich.text import Text

        note, style = self._note if self._hidden and not self._clock else ("", "")
        state = _bar(self._done, self._total) + Text(self._clock, "yellow") + Text(note, style)
        lines = [Text(""), state, Text(self._keys, "dim")]
        for line in lines:
            line.truncate(self._columns())
        shown = self._size.lines - self._room()  # fewer than those, if the terminal is very low
        return [self._drawn(line, None)[0] for line in lines[len(lines) - shown :]]

    def _faint(self, text: str) -> str:
        from rich.text import Text

        return self._drawn(Text(text, "dim"), None)[0]

    def _write(self, text: str) -> None:
        sys.stdout.flush()
        data = text.encode(sys.stdout.encoding, "replace")
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]


def _size() -> os.terminal_size:
    """The size of the terminal, which COLUMNS and LINES do not follow when it changes."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        found = os.terminal_size((0, 0))
    return found if found.columns and found.lines else os.terminal_size((80, 24))


def _bar(done: int, total: int) -> "Any":
    from rich.text import Text

    full = _BAR * done // max(total, 1)
    return (
        Text("[")
        + Text("#" * full, "green")
        + Text("-" * (_BAR - full), "dim")
        + Text(f"] {done} of {total}")
    )


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
