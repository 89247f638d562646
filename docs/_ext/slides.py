# SPDX-License-Identifier: MIT
"""Slides: teaching/deck.html, made of the outline on teaching/slides.md: one file, without scripts.

A numbered line is a slide. Its pictures stand below it, and the programs that it names in brackets, with their outputs
folded, so that the audience can guess first.
"""

import base64
import html
import re
from pathlib import Path

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

DOCS = Path(__file__).resolve().parents[1]
OUTLINE = DOCS / "teaching" / "slides.md"
STYLE = DOCS / "_ext" / "slides.css"
LISTINGS = (DOCS / "tutorial" / "listings", DOCS / "teaching" / "listings")
LONG = 22  # lines; longer programs stand in two columns
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
KINDS = {".gif": "image/gif", ".png": "image/png", ".svg": "image/svg+xml"}
NAMED = re.compile(r"`(\w+)\.py\b[^`]*`")


def deck(outline):
    """The whole page, from the text of the outline."""
    markdown, parts = MarkdownIt(), []
    _title, *lectures = re.split(r"^## ", outline, flags=re.MULTILINE)
    for lecture in lectures:
        heading, _, text = lecture.partition("\n")
        parts.append(f'<section class="title"><h1>{html.escape(heading)}</h1></section>')
        for item in re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]:
            pictures = "".join(picture(*found) for found in IMAGE.findall(item))
            item = IMAGE.sub("", item)
            # Without links, which lead off the screen.
            text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(item.split()))
            said = re.sub(
                r"\s*\[(?:`[^`]*`(?:, )?)+\]", lambda run: "" if NAMED.search(run[0]) else run[0], text
            )
            parts.append(
                f"<section><h2>{markdown.renderInline(said)}</h2>{pictures}{''.join(shown(text))}</section>"
            )
    style = HtmlFormatter(style="friendly").get_style_defs("pre")
    return (
        '<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>spcomm: slides</title>\n'
        f"<style>{STYLE.read_text()}{style}</style>\n<body>\n{chr(10).join(parts)}\n</body></html>\n"
    )


def picture(alt, name):
    """A picture of a line, within the page."""
    path = OUTLINE.parent / name
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{html.escape(" ".join(alt.split()))}" src="data:{KINDS[path.suffix]};base64,{data}">'


def shown(text):
    """The programs that a line names, and their outputs."""
    for name in dict.fromkeys(NAMED.findall(text)):
        for path in (folder / f"{name}.py" for folder in LISTINGS):
            if path.exists():
                code = path.read_text().partition("\n")[2]  # without the licence
                kind = "long" if code.count("\n") > LONG else "short"
                code = highlight(code, PythonLexer(), HtmlFormatter(nowrap=True))
                output = html.escape(path.with_suffix(".txt").read_text())
                yield f'<pre class="{kind}">{code}</pre>'
                yield f"<details><summary>{name}.py prints</summary><pre>{output}</pre></details>"


def write(app, exception):
    """For Sphinx, when all pages are there."""
    if exception is None and app.builder.format == "html":
        page = Path(app.outdir, "teaching", "deck.html")
        page.write_text(deck(OUTLINE.read_text()), encoding="utf-8")
