# SPDX-License-Identifier: MIT
"""Pages in Markdown: the files, one of them by its name, and its text with everything that the site would put there.

A mark such as ``<!-- header: spcomm/spcomm.h -->`` says what the site shows in place of the block below it, up to the
next empty line: the docstrings of the names in the first column of a table (``api``), those of a module, the text of
the codes or of the commands, a C header, a notebook, another file; the options of ``spcomm run`` are the block itself.
Those who read the Markdown itself see the block: a table that scripts/pages.py fills with a line on each name, or a
link.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from spcomm.demo import data_dir
from spcomm.learn import names

SECTIONS = ("", "tutorial", "howto", "reference", "reference/api", "teaching", "notebooks")
LISTING = "spcomm docs"
_OTHERS = ("reference/headers", "internals")  # found by name, and in no list
MARK = re.compile(
    r"^<!-- (api|module|codes|commands|options|header|notebook|include)(?:: (\S+))? -->\n((?:.+\n)*)",
    re.MULTILINE,
)


def folder() -> Path:
    """Return the folder of the pages: of the installed package, or of the checkout.

    Raises
    ------
    FileNotFoundError
        Neither is there.
    """
    return data_dir("docs", "tutorial/index.md")


def found(section: str) -> list[str]:
    """Return the names of a section's pages, such as ``howto/room``; its index comes first."""
    paths = sorted((folder() / section).glob("*.md"), key=lambda path: (path.stem != "index", path.name))
    return [f"{section}/{path.stem}".lstrip("/") for path in paths]


def title(name: str) -> str:
    """Return the heading of a page."""
    with open(path(name), encoding="utf-8") as file:
        return next((line.lstrip("# ").strip() for line in file if line.startswith("# ")), name)


def path(name: str) -> Path:
    """Return the file of a page."""
    return folder() / f"{name}.md"


def named(word: str) -> str:
    """Return the page that a word means: ``howto/room``, ``room``, ``5`` of the tutorial, a section, or part
    of a name or a title.

    Raises
    ------
    UsageError
        No page has this name, or several contain the word; the text has the nearest.
    """
    wanted = word.strip().strip("/").removesuffix(".md").removeprefix("docs/")
    known = {name.lower(): name for section in (*SECTIONS, *_OTHERS) for name in found(section)}
    for name in (wanted.lower(), f"{wanted.lower()}/index"):
        if name in known:
            return known[name]
    beginning = [known[name] for name in known if "/" in wanted and name.startswith(wanted.lower())]
    if len(beginning) == 1:
        return beginning[0]
    last: dict[str, str] = {}
    for name in known.values():
        last.setdefault(name.rpartition("/")[2], name)
    of_users = {word: name for word, name in last.items() if name.rpartition("/")[0] in SECTIONS}
    if wanted.lower() in of_users:
        return of_users[wanted.lower()]
    sections = ("tutorial",) if wanted.isdecimal() else SECTIONS  # notebooks have numbers, too
    some = [
        word for word, name in of_users.items() if name.rpartition("/")[0] in sections and word != "index"
    ]
    plain = wanted.lower().replace(" ", "")
    is_named = any(plain in word for word in some)
    titled = [name for name, its_title in listed() if plain in its_title.lower().replace(" ", "")]
    if len(titled) == 1 and not wanted.isdecimal() and not is_named:
        return titled[0]
    if wanted.lower() in last and not is_named:
        return last[wanted.lower()]
    return last[names.chosen(wanted, some, "page", LISTING)]


def text(name: str) -> str:
    """Return a page's Markdown; what the site reads from the package itself stands in place of its mark."""
    return expanded(path(name))


def expanded(page: Path) -> str:
    """Return the Markdown of a file, as in `text`."""

    def shown(match: "re.Match[str]") -> str:
        if match[1] == "include":
            return (page.parent / match[2]).read_text(encoding="utf-8").partition("\n")[2]
        return _SHOWN[match[1]](match[2], match[3]) + "\n"

    return MARK.sub(shown, page.read_text(encoding="utf-8"))


def names_in(table: str) -> list[str]:
    """Return the names in the first column of a table."""
    return re.findall(r"^\| `([\w.]+)`", table, re.MULTILINE)


def documented(name: str) -> str:
    """Return the docstring of a public name below spcomm."""
    import inspect

    import spcomm

    thing: object = spcomm
    for part in name.split("."):
        thing = inspect.getattr_static(thing, part) if thing is not spcomm else getattr(thing, part)
    return inspect.getdoc(getattr(thing, "__func__", thing)) or ""  # the function of a class method


def _api(_argument: str, table: str) -> str:
    entries = ((name, documented(name)) for name in names_in(table))
    return "\n\n".join(f"### spcomm.{name}\n\n```text\n{text}\n```" for name, text in entries)


def _codes(_argument: str, _table: str) -> str:
    from spcomm.diagnose import explain

    return "\n\n".join(map(explain.page, explain.codes()))


def _commands(_argument: str, _table: str) -> str:
    from spcomm import cli

    helps = {name: cli.parser_of(name) for name in cli.summaries()}
    parts = [
        f"## spcomm {name}\n\n```text\n{found.format_help()}```" for name, found in helps.items() if found
    ]
    return "\n\n".join(parts)


def _header(argument: str, _link: str) -> str:
    from spcomm.compiling import include_dir

    return f"```c\n{(Path(include_dir()) / argument).read_text(encoding='utf-8')}```"


def _module(name: str, _table: str) -> str:
    return f"`python -m pydoc {name}` prints its docstrings."


_SHOWN = {
    "api": _api,
    "codes": _codes,
    "commands": _commands,
    "options": lambda _argument, table: table.rstrip(),
    "header": _header,
    "notebook": lambda name, _block: f"`spcomm examples init DIR` copies it to `DIR/notebooks/{name}.ipynb`.",
    "module": _module,
}


def listed() -> Iterator[tuple[str, str]]:
    """Yield (name, title) of the pages for users, section by section."""
    for section in SECTIONS:
        for name in found(section):
            yield name, title(name)
