# SPDX-License-Identifier: MIT
"""`spcomm docs [PAGE]`: lists the pages, and shows one at the terminal or in a browser."""

import os
import re
import sys

from spcomm.argument_parser import ArgumentParser
from spcomm.docs import pages
from spcomm.learn.names import UsageError
from spcomm.text import aligned, printable

_WIDTH = 100  # columns of a page, also at wider terminals


def parser() -> ArgumentParser:
    """Return the parser of `spcomm docs`."""
    made = ArgumentParser(
        "spcomm docs",
        "spcomm docs [--browser] [PAGE]",
        "Shows a page of the documentation, which comes with spcomm and needs no network. In a pipe it is Markdown.",
        "The programs of the tutorial: spcomm examples init DIR copies them to DIR/tutorial.",
        completed=lambda before: [] if before else list(pages.listed()),
    )
    made.add_argument(
        "page",
        nargs="?",
        metavar="PAGE",
        help="its name, a part of it, or its number in the tutorial; without one, the list of all pages",
    )
    made.add_argument(
        "--browser",
        action="store_true",
        help="open it in a browser, and serve the pages on this machine until Ctrl-C",
    )
    return made


def main(words: "list[str]") -> int:
    """Run `spcomm docs`; return the exit code: 1 if there are no pages, 125 for a wrong command line."""
    asked = parser().parse_args(words)
    try:
        return _run(asked.page, asked.browser)
    except (UsageError, FileNotFoundError) as error:
        print(f"spcomm docs: {printable(str(error))}", file=sys.stderr)
        return 125 if isinstance(error, UsageError) else 1


def _run(page: "str | None", in_browser: bool) -> int:
    if in_browser:
        from spcomm.docs import browser

        browser.serve("index" if page is None else pages.named(page))
    elif page is not None:
        _show(pages.text(pages.named(page)))
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
