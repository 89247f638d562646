# SPDX-License-Identifier: MIT
"""Help of a command: one description from which `--help` and the completion of shells are made."""

import os
import re
import textwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Row = tuple[str, str]  # as in ("-n N, -np N", "number of nodes")
    Section = tuple[str, Sequence[Row]]  # a heading, perhaps empty, and its rows
    Arguments = str | Sequence[tuple[str, str]]

WIDTH = 100
_LABEL = 20
_FILES = ("FILE", "TABLE", "GRADES", "OUT")  # values that are names of files
_FOLDERS = ("FOLDER", "DIR")


class CommandHelp:
    """Usage, purpose and options of a command.

    `usage` has a line for each form of the command, and `about` and `closing` are paragraphs, separated by empty lines;
    a paragraph with an indented line stands as it is. `arguments` is what completion offers for a word that is no
    option: FILE, FOLDER, (word, text) pairs, or a function that returns one of these for the words before.
    `program_after`: the first word that is no option, and the value of one of these, is a program with words of its
    own; None: the command runs no program.
    """

    def __init__(
        self,
        usage: str,
        about: str,
        *sections: "Section",
        closing: str = "",
        arguments: "Arguments | Callable[[list[str]], Arguments]" = (),
        program_after: "Sequence[str] | None" = None,
    ) -> None:
        self.usage = usage.splitlines()
        self.about = about
        self.sections = sections
        self.closing = closing
        self.arguments = arguments
        self.program_after = program_after

    def text(self) -> str:
        """Return the text of `--help`."""
        label = min(
            _LABEL, max((len(shown) for _heading, rows in self.sections for shown, _text in rows), default=0)
        )
        parts = [
            "\n".join(f"{'usage:' if at == 0 else '      '} {line}" for at, line in enumerate(self.usage))
        ]
        parts.append(filled(self.about))
        for heading, rows in self.sections:
            parts.append((f"{filled(heading)}\n" if heading else "") + listed(rows, label))
        if self.closing:
            parts.append(filled(self.closing))
        return "\n\n".join(parts) + "\n"

    def options(self) -> "list[tuple[str, str, str]]":
        """Return (name, value, help) of each option; see `spellings`."""
        return [
            (name, value, text)
            for _heading, rows in self.sections
            for shown, text in rows
            if shown.startswith("-")
            for name, value in spellings(shown)
        ]

    def words_at(self, before: "list[str]", word: str) -> "Arguments":
        """Return what may stand in place of a word after these: FILE, FOLDER, or words, each with a text."""
        options: dict[str, str] = {"-h": "", "--help": ""}
        texts = {"-h": "the most used options"} if self.program_after is not None else {}
        texts["--help"] = "explain the options"
        for name, value, text in self.options():
            options[name] = options.get(name) or value
            texts.setdefault(name, text)
        waiting, arguments, is_program = "", [], False
        for each in before:
            if is_program:
                is_program = each != ":"
            elif waiting:
                is_program = waiting in (self.program_after or ())
                waiting = ""
            elif options.get(each, "=")[:1] not in ("", "="):
                waiting = each
            elif each == "--" or not each.startswith("-"):
                is_program = self.program_after is not None
                arguments += [] if each == "--" else [each]
        if is_program:
            return "FILE"
        if waiting:
            return _values(options[waiting])
        name, equals, _value = word.partition("=")
        if equals and name in options:
            found = _values(options[name].removeprefix("="))
            return found if isinstance(found, str) else [(f"{name}={value}", text) for value, text in found]
        if word.startswith("-"):
            return list(texts.items())
        return self.arguments(arguments) if callable(self.arguments) else self.arguments


def _values(shown: str) -> "Arguments":
    """Return the values of an option whose value is shown as FILE, or as `fork|exec`."""
    if shown in _FILES:
        return "FILE"
    if shown in _FOLDERS:
        return "FOLDER"
    if shown.startswith("VAR"):
        return [(name, "") for name in sorted(os.environ)]
    if shown.endswith("RANKS"):
        return [("all", "all nodes"), ("none", "no node")]
    return [(each, "") for each in shown.split("|") if each.islower()]


def spellings(shown: str) -> "list[tuple[str, str]]":
    """Return (name, value) of each spelling in a label such as `-j N, --jobs N`.

    The value of an option without one is empty; that of `--html[=OUT]`, which cannot be the next word, is `=OUT`.
    """
    found = []
    for word in re.split(r", (?=-)", shown):
        name, value = re.fullmatch(r"(-[\w-]+)(.*)", word).groups()  # type: ignore[union-attr]
        found.append((name, re.sub(r"^\[=(.*)\]$", r"=\1", value).lstrip()))
    return found


def filled(text: str) -> str:
    """Return paragraphs of at most 100 columns; an indented line, such as a command, stays as it is."""
    paragraphs = []
    for paragraph in text.strip("\n").split("\n\n"):
        is_fixed = any(line.startswith(" ") for line in paragraph.splitlines())
        paragraphs.append(
            paragraph
            if is_fixed
            else textwrap.fill(paragraph, WIDTH, break_on_hyphens=False, break_long_words=False)
        )
    return "\n\n".join(paragraphs)


def listed(rows: "Sequence[Row]", label: int) -> str:
    """Return rows in two columns, the first of this width; a longer label has a line to itself."""
    lines = []
    for shown, text in rows:
        first, *rest = textwrap.wrap(text, WIDTH - label - 4, break_on_hyphens=False) or [""]
        short = len(shown) <= label
        lines += [f"  {shown:{label}}  {first}"] if short else [f"  {shown}", f"{'':{label + 4}}{first}"]
        lines += [f"{'':{label + 4}}{line}" for line in rest]
    return "\n".join(lines)
