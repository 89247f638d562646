# SPDX-License-Identifier: MIT
"""`spcomm docs [PAGE]`: lists the pages, and shows one at the terminal or in a browser."""

import os
import re
import sys

from spcomm.command_help import CommandHelp
from spcomm.docs import pages
from spcomm.learn.names import UsageError
from spcomm.text import aligned, printable

_WIDTH = 100  # columns of a page, also at wider terminals


def command_help() -> CommandHelp:
    """Return the help of `spcomm docs`."""
    rows = [
        ("PAGE", "its name, a part of it, or its number in the tutorial; without one, the list of all pages"),
        ("--browser", "open it in a browser, and serve the pages on this machine until Ctrl-C"),
    ]
    return CommandHelp(
        "spcomm docs [--browser] [PAGE]",
        "Shows a page of the documentation, which comes with spcomm and needs no network. In a pipe it is Markdown.",
        ("", rows),
        closing="The programs of the tutorial: spcomm examples init DIR copies them to DIR/tutorial.",
        arguments=lambda before: (
            [] if [word for word in before if word != "--browser"] else list(pages.listed())
        ),
    )


def main(words: "list[str]") -> int:
    """Run `spcomm docs`; return the exit code: 1 if there are no pages, 125 for a wrong command line."""
    if any(word in ("-h", "--help") for word in words):
        print(command_help().text(), end="")
        return 0
    try:
        return _run(words)
    except (UsageError, FileNotFoundError) as error:
        print(f"spcomm docs: {printable(str(error))}", file=sys.stderr)
        return 125 if isinstance(error, UsageError) else 1


def _run(words: "list[str]") -> int:
    names = [word for word in words if word != "--browser"]
    for word in names:
        if word.startswith("-"):
            raise UsageError(f"no option {word}; see `spcomm docs --help`")
    if len(names) > 1:
        raise UsageError(f"give one page, not {len(names)}; `{pages.LISTING}` lists them")
    if "--browser" in words:
        from spcomm.docs import browser

        browser.serve(pages.named(names[0]) if names else "index")
    elif names:
        _show(pages.text(pages.named(names[0])))
    else:
        print(aligned(list(pages.listed()), left=None, indent=""))
        print(
            "`spcomm docs PAGE` shows one, `spcomm docs --browser PAGE` in a browser; a part of its name is enough."
        )
        print("Those about spcomm's inside: `spcomm docs internals`.")
    return 0


def _show(text: str) -> None:
    """Show Markdown: as it is in a pipe; formatted, and a screen at a time, at a terminal."""
    text = re.sub(r"<!--.*?-->\n", "", text, flags=re.DOTALL)
    if not sys.stdout.isatty():
        print(text, end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    os.environ.setdefault("LESS", "-FRX")  # colours, and no waiting for a key at the end of a short page
    console = Console(highlight=False)
    width = min(_WIDTH, console.width)
    with console.pager(styles=console.color_system is not None):
        console.print(Markdown(text), width=width)
