# SPDX-License-Identifier: MIT
"""Check a built site without a network: ``check-site.py build/docs/html``. Every link within it leads somewhere, and
no page loads anything from elsewhere. Links to other sites are left alone.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

OTHERS = ("genindex", "search", "py-modindex")  # Sphinx's own pages


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.unread = [], {""}, "```{" in text
        self.loaded = []  # from other sites
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
                if tag != "a" and urlsplit(value).netloc:
                    self.loaded.append(value)
            elif name == "id":
                self.anchors.add(value)


def complaints(site):
    """One line for each link that leads nowhere, and how many there are in all."""
    pages = {path.resolve(): Page(path.read_text()) for path in site.rglob("*.html")}
    found, count = [], 0
    for path, page in sorted(pages.items()):
        if page.unread:
            found.append(f"{path.relative_to(site.resolve())} shows a block that was not understood")
        found += [f"{path.relative_to(site.resolve())} loads {link}" for link in page.loaded]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{path.relative_to(site.resolve())} links to {link}: no such file")
            elif (
                target in pages
                and unquote(parts.fragment) not in pages[target].anchors
                and path.stem not in OTHERS
            ):
                found.append(f"{path.relative_to(site.resolve())} links to {link}: no such place there")
    return found, count


def main(words):
    found, count = complaints(Path(words[0]))
    print("\n".join(found) or f"{count} links checked: none broken")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
