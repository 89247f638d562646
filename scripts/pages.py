# SPDX-License-Identifier: MIT
"""Fill the pages of docs/ with what they show, draw their drawings, and list the pages in llms.txt.

A page names the file of a block in a comment, so that every reader of Markdown sees the program itself:

    <!-- listing: listings/01_hello.py -->
    ```python
    ```

The text between the fences is replaced by that of the file. The source of a drawing (docs/_ext/drawing.py) is a comment
above its picture, `NAME-light.svg` in docs/pictures; `right` and `from SOURCE` (docs/_ext/floors.py) may follow the
name:

    <!-- drawing: steps right
    send -> recv
    -->
    ![A message.](../pictures/steps-light.svg)

The site shows docstrings, the help of commands, C headers and notebooks in place of the block below a mark
(spcomm/docs/pages.py). Where that block is a table, this script fills it with a line on each name. Add a name to a
table as a row of its own, "| `Comm.send` |".
"""

import functools
import importlib
import inspect
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"
ABOUT = """\
> Run one Python, C or C++ program as n cooperating processes, to learn parallel programming: messages,
> barriers, reductions, and reports that explain what went wrong."""
SECTIONS = {
    "": "Start",
    "tutorial": "Tutorial",
    "howto": "How-to guides",
    "reference": "Reference",
    "reference/api": "Python",
    "teaching": "Teaching",
    "notebooks": "Notebooks",
}
LISTING = re.compile(r"^(<!-- listing: (\S+) -->\n(`{3,})\w*\n)(.*?)^(?=\3$)", re.MULTILINE | re.DOTALL)
DRAWING = re.compile(
    r"^<!-- drawing: (\w+)( right)?(?: from (\S+))?\n(.*?)^-->$", re.MULTILINE | re.DOTALL
)  # fmt: skip

sys.path.insert(0, str(DOCS / "_ext"))
import drawing  # noqa: E402
import floors  # noqa: E402

from spcomm import cli  # noqa: E402
from spcomm.diagnose import explain  # noqa: E402
from spcomm.docs import pages as marked  # noqa: E402
from spcomm.launch.cmdline import table as options  # noqa: E402


def pages():
    """All pages, in order."""
    return sorted(DOCS.rglob("*.md"))


def filled(page):
    """The text of a page with what its listings contain now, and its tables."""
    text = page.read_text(encoding="utf-8")
    text = LISTING.sub(lambda found: found[1] + named(page.parent / found[2]), text)
    return marked.MARK.sub(lambda found: with_table(page, *found.groups(), found[0]), text)


def with_table(page, kind, argument, block, text):
    """A mark and its block, whose table has a line on each name."""
    rows = {"api": api_rows, "module": module_rows, "codes": code_rows, "commands": command_rows}
    rows["options"] = option_rows
    if kind not in rows:
        return text
    lines = [f"| {name} | {said} |" for name, said in rows[kind](page, argument, block)]
    return "\n".join([text.partition("\n")[0], "| | |", "| --- | --- |", *lines, ""])


def api_rows(_page, _argument, block):
    for name in marked.names_in(block):
        yield f"`{name}`", summary(marked.documented(name))


def module_rows(_page, argument, _block):
    module = importlib.import_module(argument)
    for name, thing in sorted(vars(module).items()):
        if getattr(thing, "__module__", None) == argument and not name.startswith("_"):
            yield f"`{name}`", summary(inspect.getdoc(thing) or "")


def code_rows(page, _argument, _block):
    folder = Path(explain.__file__).parent / "pages"
    for code in explain.codes():
        yield f"[{code}]({os.path.relpath(folder / f'{code}.md', page.parent)})", explain.title(code)


def command_rows(_page, _argument, _block):
    for name, said in cli.summaries().items():
        yield f"`spcomm {name}`", said


# An option in a sentence, with the command that it is of.
OPTION = re.compile(
    r"(?<![\w`-])(?:(?:python|ssh|mpiexec|spcomm \w+) )?--?[a-z][\w-]*(?:=[A-Z:]+)?(?: (?:BatchMode=yes|mpi\b))?"
)


def option_rows(_page, _argument, _block):
    for heading, rows in options.parser().groups():
        yield f"**{heading}**", ""
        for label, said in rows:
            names = ", ".join(f"`{name}`" for name in label.split(", "))
            yield names.replace("|", r"\|"), OPTION.sub(r"`\g<0>`", said)


def summary(docstring):
    """The first paragraph, as a line of a table."""
    return " ".join(docstring.partition("\n\n")[0].split()).replace("``", "`").replace("|", r"\|")


def named(path):
    """A program with its name in place of its licence: reports count lines from the file's first."""
    first, line_end, rest = path.read_text(encoding="utf-8").partition("\n")
    return first.replace("SPDX-License-Identifier: MIT", path.name) + line_end + rest


@functools.cache
def drawings():
    """{file: text} of all drawings, in each scheme."""
    found = {}
    for page in pages():
        for name, right, source, text in DRAWING.findall(page.read_text(encoding="utf-8")):
            graph = drawing.parse((floors.text(source) + "\n" if source else "") + text)
            for scheme in drawing.SCHEMES:
                found[PICTURES / f"{name}-{scheme}.svg"] = drawing.alone(graph, scheme, bool(right))
    return found


def contents():
    """docs/llms.txt: a list of the pages for users, in the form of llmstxt.org, for programs that read."""
    lines = [f"# {title(DOCS / 'index.md')}", "", ABOUT, ""]
    for section, heading in SECTIONS.items():
        found = sorted((DOCS / section).glob("*.md"), key=lambda page: (page.stem != "index", page.name))
        lines += [f"## {heading}", ""]
        lines += [f"- [{title(page)}]({page.relative_to(DOCS).as_posix()})" for page in found] + [""]
    return "\n".join(lines[:-1]) + "\n"


def title(page):
    """The heading of a page."""
    return re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)[1]


def made():
    """{file: its text} of all that this script writes."""
    return {page: filled(page) for page in pages()} | drawings() | {DOCS / "llms.txt": contents()}


def main():
    for path, text in made().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
