# SPDX-License-Identifier: MIT
"""`argparse` with the help, the exit code and the errors of the other commands."""

import argparse
import sys
from collections.abc import Callable

from spcomm.command_help import CommandHelp
from spcomm.text import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from spcomm.command_help import Arguments, Section


class ArgumentParser(argparse.ArgumentParser):
    """Parser whose `--help` is the text of a `CommandHelp`, made from the arguments that were added.

    `sections` follow those of the options. `completed` is what completion offers for a word that is no option.
    """

    def __init__(
        self, prog: str, usage: str, about: str, closing: str = "", completed: "Arguments" = ()
    ) -> None:
        super().__init__(prog=prog, add_help=False, allow_abbrev=False)
        self.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
        self._about, self._closing, self._completed = about, closing, completed
        self._forms = usage
        self.sections: list[Section] = []

    def command_help(self) -> CommandHelp:
        """Return the help of the command."""
        named, *others = [group for group in self._action_groups if group.title != "options"]
        options = next(group for group in self._action_groups if group.title == "options")
        groups = [("", named), ("", options), *((f"{group.title}:", group) for group in others)]
        sections = [(heading, _rows(group._group_actions)) for heading, group in groups]
        return CommandHelp(
            self._forms,
            self._about,
            *(section for section in sections if section[1]),
            *self.sections,
            closing=self._closing,
            arguments=self._completed,
        )

    def format_help(self) -> str:
        """Return the text of `--help`."""
        return self.command_help().text()

    def error(self, message: str) -> "NoReturn":
        """End with the exit code of a wrong command line."""
        print(f"{self.prog}: {message} ({self.prog} --help lists the options)", file=sys.stderr)
        raise SystemExit(125)


def _rows(actions: "list[argparse.Action]") -> "list[tuple[str, str]]":
    rows = []
    for action in actions:
        if action.help is argparse.SUPPRESS:
            continue
        value = action.metavar if isinstance(action.metavar, str) else "|".join(action.choices or ())
        names = action.option_strings
        label = ", ".join(f"{name} {value}".rstrip() for name in names) if names else value
        rows.append((label, action.help or ""))
    return rows


def whole(least: int, most: int, noun: str) -> "Callable[[str], int]":
    """Return a `type` for arguments: a whole number of these."""

    def read(text: str) -> int:
        value = whole_number(text)
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of {noun} from {least} to {most}")
        return value

    return read
