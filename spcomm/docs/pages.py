# SPDX-License-Identifier: MIT
"""Pages in Markdown: the files, one of them by its name, and its text with everything that the site would put there."""

import re
from collections.abc import Iterator
from pathlib import Path

from spcomm.demo import data_dir
from spcomm.learn import names

SECTIONS = ("", "tutorial", "howto", "reference", "reference/api", "teaching", "notebooks")
LISTING = "spcomm docs"
_OTHERS = ("reference/headers", "internals")  # found by name, and in no list
_BLOCK = re.compile(r"^```\{(\w[\w-]*)\} ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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
    """Return the page that a word means: ``howto/room``, ``room``, ``5`` of the tutorial, a section, or a part.

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
    last: dict[str, str] = {}
    for name in known.values():
        last.setdefault(name.rpartition("/")[2], name)
    if wanted.lower() in last:
        return last[wanted.lower()]
    sections = ("tutorial",) if wanted.isdecimal() else SECTIONS  # notebooks have numbers, too
    some = [word for word, name in last.items() if name.rpartition("/")[0] in sections and word != "index"]
    return last[names.chosen(wanted, some, "page", LISTING)]


def text(name: str) -> str:
    """Return a page's Markdown; what the site reads from the package itself stands in place of its mark."""
    return expanded(path(name))


def expanded(page: Path) -> str:
    """Return the Markdown of a file, as in `text`."""

    def block(match: "re.Match[str]") -> str:
        kind, argument, content = match[1], match[2].strip(), match[3]
        if kind == "include":
            return (page.parent / argument).read_text(encoding="utf-8").partition("\n")[2]
        return _BLOCKS[kind](argument, content) if kind in _BLOCKS else match[0]

    return _BLOCK.sub(block, page.read_text(encoding="utf-8"))


def _api(_argument: str, content: str) -> str:
    return "\n\n".join(_entry(name.strip()) for name in content.splitlines() if name.strip())


def _entry(name: str) -> str:
    import inspect

    import spcomm

    thing: object = spcomm
    for part in name.split("."):
        thing = inspect.getattr_static(thing, part) if thing is not spcomm else getattr(thing, part)
    documented = inspect.getdoc(thing) or ""
    return f"### spcomm.{name}\n\n```text\n{documented}\n```"


def _codes(_argument: str, _content: str) -> str:
    from spcomm.diagnose import explain

    return "\n\n".join(map(explain.page, explain.codes()))


def _commands(_argument: str, _content: str) -> str:
    from spcomm import cli

    helps = {name: cli.help_of(name) for name in cli.summaries()}
    parts = [f"## spcomm {name}\n\n```text\n{found.text()}```" for name, found in helps.items() if found]
    return "\n\n".join(parts)


def _header(argument: str, _content: str) -> str:
    from spcomm.compiling import include_dir

    return f"```c\n{(Path(include_dir()) / argument).read_text(encoding='utf-8')}```"


def _module(_argument: str, content: str) -> str:
    name = content.partition("automodule:: ")[2].partition("\n")[0]
    return f"`python -m pydoc {name}` prints its docstrings."


_BLOCKS = {
    "api": _api,
    "codes": _codes,
    "commands": _commands,
    "header": _header,
    "toctree": lambda _argument, _content: "",
    "notebook": lambda name, _content: (
        f"`spcomm examples init DIR` copies it to `DIR/notebooks/{name}.ipynb`."
    ),
    "eval-rst": _module,
}


def listed() -> Iterator[tuple[str, str]]:
    """Yield (name, title) of the pages for users, section by section."""
    for section in SECTIONS:
        for name in found(section):
            yield name, title(name)
