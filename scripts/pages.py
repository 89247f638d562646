# SPDX-License-Identifier: MIT
"""Fill the pages of docs/ with the programs and outputs that they show, draw their drawings, and list them in llms.txt.

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
"""

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


def pages():
    """All pages, in order."""
    return sorted(DOCS.rglob("*.md"))


def filled(page):
    """The text of a page with what its listings contain now."""
    return LISTING.sub(
        lambda found: found[1] + named(page.parent / found[2]),
        page.read_text(encoding="utf-8"),
    )


def named(path):
    """A program with its name in place of its licence: reports count lines from the file's first."""
    first, line_end, rest = path.read_text(encoding="utf-8").partition("\n")
    return first.replace("SPDX-License-Identifier: MIT", path.name) + line_end + rest


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
