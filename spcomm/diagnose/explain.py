# SPDX-License-Identifier: MIT
"""`spcomm explain [CODE]` or `spcomm explain WORD`: explains a code in a message by example, with a remedy.

A page is Markdown: a title, the meaning of the code, a program that goes wrong with its output, and the same program
fixed. tests/diagnose runs all of them.
"""

import os
import sys
from argparse import SUPPRESS

from spcomm.argument_parser import ArgumentParser

_MOST_COLUMNS = 100  # of paragraphs, also at wider terminals; programs and output stay as they are
_PAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pages")


def parser() -> ArgumentParser:
    """Return the parser of `spcomm explain`."""
    made = ArgumentParser(
        "spcomm explain",
        "spcomm explain [CODE]",
        "Explains a code in a message, such as SP101, by example. Without a code, it lists all of them.",
        "A word of its title works, too: spcomm explain deadlock",
        completed=lambda before: [] if before else [(code, title(code)) for code in codes()],
    )
    made.add_argument("code", nargs="?", help=SUPPRESS)
    return made


def main(words: "list[str]") -> int:
    """Print the page of a code, or the list of all codes; return the exit code."""
    asked = parser().parse_args(words).code
    if asked is None:
        for code in codes():
            print(f"{code}  {title(code)}")
        print("\nspcomm explain CODE explains one of them.")
        return 0
    code = asked.strip("[]().,:").upper()
    code = f"SP{code}" if code.isdecimal() else code
    if code not in codes():
        found = _titled(asked)
        if len(found) > 1:
            return _complain(f"{asked!r} is in several titles: {', '.join(found)}; give one code")
        code = found[0] if found else code
    if code not in codes():
        return _complain(f"there is no code {asked!r}; {_allowed()}")
    print(shown(page(code)), end="")
    return 0


def codes() -> "list[str]":
    """Return all codes that have a page, in order."""
    return sorted(name[:-3] for name in os.listdir(_PAGES) if name.endswith(".md"))


def page(code: str) -> str:
    """Return the page's text, in Markdown."""
    with open(os.path.join(_PAGES, f"{code}.md"), encoding="utf-8") as file:
        return file.read()


def title(code: str) -> str:
    """Return the title, a few words."""
    return page(code).splitlines()[0].partition(": ")[2]


def _titled(word: str) -> "list[str]":
    """Return the codes whose titles have a word that begins so: `deadlock`, `deadlocks`, `spin`."""
    start = word.lower().rstrip("s")
    if len(start) < 4:
        return []
    return [code for code in codes() if any(part.startswith(start) for part in title(code).lower().split())]


def shown(text: str) -> str:
    """Format for a terminal: programs and output are set off by blanks, headings stand alone, paragraphs fit."""
    import shutil
    import textwrap

    width = max(1, min(shutil.get_terminal_size((_MOST_COLUMNS, 24)).columns, _MOST_COLUMNS))
    lines, paragraph, inside = [], [], False
    for line in [*text.splitlines(), ""]:
        plain = not inside and line and not line.startswith(("```", "#"))
        if plain:
            paragraph.append(line)
            continue
        lines += textwrap.wrap(" ".join(paragraph), width, break_long_words=False, break_on_hyphens=False)
        paragraph = []
        if line.startswith("```"):
            inside = not inside
        else:
            lines.append(f"    {line}".rstrip() if inside else line.lstrip("#").strip())
    return "\n".join(lines[:-1]) + "\n"


def _allowed() -> str:
    found = codes()
    return f"there are {found[0]} to {found[-1]}, and `spcomm explain` lists them"


def _complain(text: str) -> int:
    print(f"spcomm explain: {text}", file=sys.stderr)
    return 125
