# SPDX-License-Identifier: MIT
"""Server of the pages on 127.0.0.1: makes each of its Markdown when a browser asks for it, so that links work.

Where `make docs` has built the site, it serves that. Only files of the documentation and the examples are served, and
nothing is written.
"""

import html
import http.server
import io
import re
import webbrowser
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spcomm.docs import pages

_SERVED = ("docs", "examples", "exercises", "csrc")  # beside the pages at the top
_PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>{style}</style>
<nav><a href="/docs/index.md">spcomm</a> <a href="/docs/tutorial/index.md">Tutorial</a>
<a href="/docs/howto/index.md">How-to</a> <a href="/docs/examples.md">Examples</a>
<a href="/docs/reference/index.md">Reference</a> <a href="/docs/teaching/index.md">Teaching</a></nav>
<main>{body}</main></html>
"""
_STYLE = """:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 50rem; padding: 1rem; font: 1rem/1.55 system-ui, sans-serif; }
nav a { margin-right: 1rem; } img { max-width: 100%; }
pre { padding: .7rem; overflow-x: auto; background: #8882; font-size: .85rem; line-height: 1.35; }
table { border-collapse: collapse; } td, th { border: 1px solid #8886; padding: .3rem .6rem; vertical-align: top; }
"""


def serve(name: str) -> None:
    """Open a page in the browser, and serve all of them until Ctrl-C."""
    site = pages.folder().parent / "build" / "docs" / "html"
    place = f"{name}.html" if (site / "index.html").is_file() else f"docs/{name}.md"
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), _Site if place.endswith(".html") else _Pages
    ) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}/{place}"
        print(f"spcomm docs: the pages are at {url} until Ctrl-C", flush=True)
        webbrowser.open(url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


class _Served(http.server.SimpleHTTPRequestHandler):
    """Files below a folder, and no lists of folders."""

    def log_message(self, format: str, *args: object) -> None:
        """The terminal stays as it is."""

    def list_directory(self, path: object) -> None:
        self.send_error(HTTPStatus.NOT_FOUND)


class _Site(_Served):
    """The built site."""

    def translate_path(self, path: str) -> str:
        self.directory = str(pages.folder().parent / "build" / "docs" / "html")
        return super().translate_path(path)


class _Pages(_Served):
    """Markdown as HTML, pictures and programs as they are."""

    extensions_map = {"": "text/plain; charset=utf-8", ".png": "image/png", ".svg": "image/svg+xml"}  # noqa: RUF012

    def send_head(self) -> "io.BytesIO | None":
        names = [part for part in unquote(urlsplit(self.path).path).split("/") if part not in ("", ".")]
        root = pages.folder().parent
        path = root.joinpath(*names)
        is_served = bool(names) and ".." not in names and (names[0] in _SERVED or names == [path.name])
        if not is_served or not path.is_file() or (len(names) == 1 and path.suffix != ".md"):
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        is_page = path.suffix == ".md"
        content = rendered(path).encode() if is_page else path.read_bytes()
        self.send_response(HTTPStatus.OK)
        self.send_header(
            "Content-Type", "text/html; charset=utf-8" if is_page else self.guess_type(str(path))
        )
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return io.BytesIO(content)


def rendered(page: Path) -> str:
    """Return a page as HTML."""
    from markdown_it import MarkdownIt  # a part of rich
    from pygments.formatters import HtmlFormatter

    markdown = MarkdownIt("commonmark", {"html": True, "highlight": _highlighted}).enable("table")
    tokens = markdown.parse(pages.expanded(page))
    title = page.stem
    for heading, content in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", anchor(content.content))
            title = content.content if heading.tag == "h1" else title
    body = markdown.renderer.render(tokens, markdown.options, {})
    body = re.sub(  # a light picture has a dark one beside it
        r'(?<!>)<img src="([^"]*)-light\.(\w+)"[^>]*>',
        r'<picture><source media="(prefers-color-scheme: dark)" srcset="\1-dark.\2">\g<0></picture>',
        body,
    )
    styles = (HtmlFormatter(style=name).get_style_defs("pre") for name in ("friendly", "native"))
    light, dark = styles
    style = f"{_STYLE}{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\npre {{ background: #8882; }}"
    return _PAGE.format(title=html.escape(title), style=style, body=body)


def anchor(heading: str) -> str:
    """Return the name of a heading in links, by the rules of code hosts."""
    plain = re.sub(r"\]\([^)]*\)", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def _highlighted(code: str, language: str, _attributes: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return highlight(code, get_lexer_by_name(language), HtmlFormatter(nowrap=True)) if language else ""
    except ClassNotFound:
        return ""
