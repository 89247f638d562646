# SPDX-License-Identifier: MIT
"""Command lines: `argparse` with spcomm's help, errors and exit code. Completion reads the same arguments."""

import argparse
import os
import sys

from spcomm.text import is_option, printable, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import NoReturn

    Row = tuple[str, str]  # as in ("-n N, -np N", "number of nodes")
    Arguments = str | Sequence[tuple[str, str]]

WIDTH = 100
_LABEL = 20
_FILES = ("FILE", "TABLE", "GRADES", "OUT")  # values that are names of files
_FOLDERS = ("FOLDER", "DIR")


class ArgumentParser(argparse.ArgumentParser):
    """Parser of a command's words, whose `--help` and completion are made from the arguments that were added.

    `usage` has a line for each form of the command, and `about` and `closing` are paragraphs, separated by empty lines;
    a paragraph with an indented line stands as it is. `sections` of rows follow those of the options. `completed` is
    what completion offers for a word that is no option: FILE, FOLDER, (word, text) pairs, or a function that returns
    one of these for the words before. `program_after`: the first word that is no option, and the value of one of these,
    is a program with words of its own; None: the command runs no program.
    """

    def __init__(
        self,
        prog: str,
        usage: str,
        about: str,
        closing: str = "",
        completed: "Arguments | Callable[[list[str]], Arguments]" = (),
        program_after: "Sequence[str] | None" = None,
    ) -> None:
        super().__init__(prog=prog, add_help=False, allow_abbrev=False, formatter_class=_Formatter)
        self._forms, self._about, self._closing = usage.splitlines(), about, closing
        self._completed, self._program_after = completed, program_after
        self.sections: list[tuple[str, Sequence[Row]]] = []

    def add_rows(
        self,
        *rows: "tuple[str, str | None, Callable[[str], object] | Sequence[str] | None, str]",
        heading: str = "",
    ) -> None:
        """Add options: spellings, value as help shows it, how it is read or the words that it may be, help.

        A value that begins with `=` may be left out. If it is None, help shows the words; without words, the option
        takes no value.
        """
        to = self.add_argument_group(heading) if heading else self
        for spellings, value, read, text in rows:
            more: dict = {"metavar": value and value.lstrip("="), "type": read}
            if value is None:
                more = {"choices": read} if read else {"action": "store_true"}
            elif value[0] == "=":
                more |= {"nargs": "?", "const": True}
            to.add_argument(*spellings.split(", "), help=text, **more)

    @property
    def options(self) -> "dict[str, argparse.Action]":
        """Each spelling of each option, and its action."""
        return self._option_string_actions

    def parse_args(self, words: "Sequence[str]") -> argparse.Namespace:  # type: ignore[override]
        """Return the values of the arguments. A wrong word ends the process with a sentence, as does `--help`."""
        options, others = self.divided(words)
        found, more = self.parse_known_args([*options, *(["--", *others] if others else [])])
        if more:
            self.error(f"too many words: {' '.join(more).removeprefix('-- ')!r} has no meaning")
        return found

    def divided(self, words: "Sequence[str]") -> "tuple[list[str], list[str]]":
        """Return the options, each joined to its value by `=`, and the other words; a program ends the options."""
        options: list[str] = []
        others: list[str] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word == "--":
                break
            if word == "-" or not word.startswith("-"):
                others.append(word)
                if self._program_after is not None:
                    break
            else:
                options.append(self._option(word, rest))
                if options[-1].partition("=")[0] in (self._program_after or ()):
                    break
        return options, others + rest

    def _option(self, word: str, rest: "list[str]") -> str:
        """Return an option with its value, which may be the first of the other words."""
        if word in ("-h", "--help"):
            self.show_help(word)
        name, equals, value = word.partition("=")
        if name not in self.options:
            name, equals, value = self._joined(word)
        action = self.options[name]
        if action.nargs == 0 and equals:
            self.error(f"{name} takes no value, but was given {value!r}")
        if equals:
            return f"{name}={value}"
        if action.nargs == 0 or (action.nargs == "?" and not (rest and self.is_value(name, rest[0]))):
            return name
        if not rest or is_option(rest[0]):
            found = f", and {rest[0]} is an option" if rest else ""
            self.error(f"{name} needs a value: {name} {shown_value(action)}{found}")
        return f"{name}={rest.pop(0)}"

    def _joined(self, word: str) -> "tuple[str, str, str]":
        """Divide `-n4`; any other option is unknown."""
        for name in self.options:
            value = word.removeprefix(name)
            if name[:2] != "--" and value != word and value.isdecimal():
                return name, "=", value
        self.error(self.unknown(word))

    def _get_values(self, action: argparse.Action, arg_strings: "list[str]") -> object:
        """As argparse, which would take the value of `--output=--` for a mark, and drop it."""
        if action.option_strings and arg_strings == ["--"]:
            value = self._get_value(action, "--")
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def show_help(self, _word: str) -> "NoReturn":
        """Answer `-h` or `--help`."""
        print(self.format_help(), end="", flush=True)
        raise SystemExit(0)

    def is_value(self, _name: str, _word: str) -> bool:
        """Whether the word after an option that may stand alone is its value; else such a value needs `=`."""
        return False

    def unknown(self, word: str) -> str:
        """Return the sentence on an option that is not there."""
        return f"unknown option {word}{near(word.partition('=')[0], self.options)}"

    def error(self, message: str) -> "NoReturn":
        """End with the exit code of a wrong command line."""
        text = printable(message.removeprefix("argument "), kept="")
        print(f"{self.prog}: {text} ({self.prog} --help lists the options)", file=sys.stderr)
        raise SystemExit(125)

    def format_help(self) -> str:
        """Return the text of `--help`."""
        sections = [(f"{heading}:" if heading else "", rows) for heading, rows in self.groups()]
        return help_text(self._forms, self._about, [*sections, *self.sections], self._closing)

    def groups(self) -> "list[tuple[str, list[Row]]]":
        """Return the heading of each group of arguments, if it has one, and how help shows them, with their texts."""
        named, options, *others = self._action_groups
        groups = [("", named), ("", options), *((group.title or "", group) for group in others)]
        found = [(heading, _rows(group._group_actions)) for heading, group in groups]
        return [(heading, rows) for heading, rows in found if rows]

    def rows(self) -> "list[Row]":
        """Return how help shows the arguments, and their texts."""
        return _rows(self._actions)

    def words_at(self, before: "list[str]", word: str) -> "Arguments":
        """Return what may stand in place of a word after these: FILE, FOLDER, or words, each with a text."""
        is_shown = {name: action for name, action in self.options.items() if action.help != argparse.SUPPRESS}
        texts = {"-h": "the most used options"} if self._program_after else {}
        texts |= {"--help": "explain the options"} | {
            name: action.help or "" for name, action in is_shown.items()
        }
        waiting, arguments, is_program = "", [], False
        for each in before:
            if is_program:
                is_program = each != ":"
            elif waiting:
                is_program = waiting in (self._program_after or ())
                waiting = ""
            elif each in is_shown:
                waiting = each if is_shown[each].nargs is None else ""
            elif each == "--" or not each.startswith("-"):
                is_program = self._program_after is not None
                arguments += [] if each == "--" else [each]
        if is_program:
            return "FILE"
        if waiting:
            return _values(shown_value(is_shown[waiting]))
        name, equals, _value = word.partition("=")
        if equals and name in is_shown:
            found = _values(shown_value(is_shown[name]))
            return found if isinstance(found, str) else [(f"{name}={value}", text) for value, text in found]
        if word.startswith("-"):
            return list(texts.items())
        return self._completed(arguments) if callable(self._completed) else self._completed


class _Formatter(argparse.HelpFormatter):
    """For `add_argument`, which makes one to check its metavar; a width spares it the import of shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=WIDTH)


def _rows(actions: "list[argparse.Action]") -> "list[Row]":
    return [row_of(action) for action in actions if action.help != argparse.SUPPRESS]


def row_of(action: argparse.Action) -> "Row":
    """Return how help shows an argument: as in `-j N, --jobs N`, and its text."""
    value = shown_value(action)
    value = f"[={value}]" if action.option_strings and action.nargs == "?" else f" {value}".rstrip()
    return ", ".join(f"{name}{value}" for name in action.option_strings) or value.strip(), action.help or ""


def shown_value(action: argparse.Action) -> str:
    """Return how help shows the value of an argument."""
    return action.metavar if isinstance(action.metavar, str) else "|".join(action.choices or ())


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


def help_text(
    usage: "Sequence[str]", about: str, sections: "Sequence[tuple[str, Sequence[Row]]]", closing: str = ""
) -> str:
    """Return the text of `--help` with these sections, each with a heading, perhaps empty, and its rows."""
    label = min(_LABEL, max((len(shown) for _heading, rows in sections for shown, _text in rows), default=0))
    parts = ["\n".join(f"{'usage:' if at == 0 else '      '} {line}" for at, line in enumerate(usage))]
    parts.append(filled(about))
    for heading, rows in sections:
        parts.append((f"{filled(heading)}\n" if heading else "") + listed(rows, label))
    if closing:
        parts.append(filled(closing))
    return "\n\n".join(parts) + "\n"


def filled(text: str) -> str:
    """Return paragraphs of at most 100 columns; an indented line, such as a command, stays as it is."""
    import textwrap

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
    import textwrap

    lines = []
    for shown, text in rows:
        first, *rest = textwrap.wrap(text, WIDTH - label - 4, break_on_hyphens=False) or [""]
        short = len(shown) <= label
        lines += [f"  {shown:{label}}  {first}"] if short else [f"  {shown}", f"{'':{label + 4}}{first}"]
        lines += [f"{'':{label + 4}}{line}" for line in rest]
    return "\n".join(lines)


def near(word: str, known: "Collection[str]") -> str:
    """Return a part of a sentence, such as ``"; did you mean --html?"``; empty if nothing is near."""
    from difflib import get_close_matches

    found = get_close_matches(word, known, 1)
    return f"; did you mean {found[0]}?" if found else ""


def one_of(kind: str, names: "Sequence[str]") -> "Callable[[str], str]":
    """Return a `type` for arguments: one of these names."""

    def read(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"no {kind} {text!r}; there are: {', '.join(names)}")
        return text

    return read


def whole(least: int, most: int, noun: str) -> "Callable[[str], int]":
    """Return a `type` for arguments: a whole number of these."""

    def read(text: str) -> int:
        value = whole_number(text)
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of {noun} from {least} to {most}")
        return value

    return read
