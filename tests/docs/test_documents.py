# SPDX-License-Identifier: MIT
"""The documents' commands, files and links exist."""

import re
import tomllib

import pytest

from checkout import ROOT, fail_with, files, relative

DOCS = ROOT / "docs"
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "csrc/README.md"]


def existing():
    return [ROOT / name for name in DOCUMENTS if (ROOT / name).exists()]


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    complaints = []
    for path in [*existing(), ROOT / ".ci" / "run", *files(".yml"), *files(".md", below="docs")]:
        for target in re.findall(
            r"(?:^|`|\$ |run: |step \w+ \d+ )make (?:[A-Z]+=\S+ )*([a-z][a-z-]*)",
            path.read_text(),
            re.MULTILINE,
        ):
            if target not in targets:
                complaints.append(f"{relative(path)} says `make {target}`, which the Makefile does not have")
    fail_with(complaints)


@pytest.mark.parametrize(
    ("name", "all_of_it"),
    [("tutorial/listings/04_circle.py", True), ("howto/listings/mpi_exchange.py", False)],
)
def test_the_readme_shows_a_listing_and_its_output(name, all_of_it):
    """The listing and its output, or its circle alone, are run by test_listings.py."""
    listing = ROOT / "docs" / name
    readme = (ROOT / "README.md").read_text()
    program = listing.read_text().partition("\n")[2]
    # As many lines as the file has: the report counts them.
    assert f"```python\n# {listing.name}\n{program}```" in readme
    output = listing.with_suffix(".txt").read_text().partition("$ echo")[0]
    assert (output if all_of_it else f"`{re.search('circle: .*', output)[0]}`") in readme


def test_pages_show_their_listings_and_drawings_as_they_are(monkeypatch):
    """Readers of Markdown see the programs, outputs and pictures themselves, without a build."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import pages

    fail_with(
        [
            f"{relative(path)} is not up to date; `make format` writes it"
            for path, text in pages.made().items()
            if not path.exists() or path.read_text() != text
        ]
    )
    texts = [page.read_text() for page in pages.pages()]
    marks = sum(text.count("<!-- listing: ") for text in texts)
    assert marks == sum(len(pages.LISTING.findall(text)) for text in texts) > 80, "a mark without a block"
    assert sum(text.count("<!-- drawing: ") for text in texts) * 2 == len(pages.drawings())


def test_readers_of_markdown_see_no_directive():
    """A page has no block or word that only the site understands, and each of its comments is one of ours."""
    from spcomm.docs import pages

    complaints = []
    for page in files(".md", below="docs"):
        text = page.read_text()
        complaints += [
            f"{relative(page)}: {found}" for found in re.findall(r"^ *(?:```\{|:::).*", text, re.M)
        ]
        text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        complaints += [f"{relative(page)}: {found}" for found in re.findall(r"\{\w+\}`.*", text)]
        comments = re.findall(r"^<!-- (.*)", re.sub(pages.MARK, "", text), re.M)
        known = r"listing: \S+ -->|drawing: \w+|toctree"
        complaints += [f"{relative(page)}: <!-- {one}" for one in comments if not re.match(known, one)]
    fail_with(complaints)


def test_a_table_has_a_line_on_each_name(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import pages

    mark, row = "<!-- api -->\n", "| `Comm.probe` | old |\n"
    table = pages.with_table(DOCS, "api", None, row, mark + row)
    assert table.startswith(f"{mark}| | |\n| --- | --- |\n| `Comm.probe` | Wait for a message, ")
    assert pages.with_table(DOCS, "header", "x.h", "a link\n", "as it is") == "as it is"
    assert pages.summary("Of ``a | b``,\nand more.\n\nNotes") == r"Of `a \| b`, and more."


# Guides about something one looks at. The others are about commands, files and words.
def test_programs_that_read_find_all_pages_for_users():
    from spcomm.docs import pages

    text = (ROOT / "docs" / "llms.txt").read_text()
    assert set(re.findall(r"\]\((.*)\.md\)$", text, re.MULTILINE)) == {name for name, _ in pages.listed()}


def test_the_cheat_sheet_names_what_exists():
    """Twenty calls, ten commands, and every code with its title."""
    import spcomm
    from spcomm import cli
    from spcomm.diagnose import explain

    calls, commands, codes = (
        (ROOT / "docs" / "reference" / "cheat_sheet.md").read_text().split("| --- | --- |")[1:]
    )
    names = re.findall(r"\bcomm\.(\w+)", calls)
    assert calls.count("\n| `") == 20 and [name for name in names if not hasattr(spcomm.Comm, name)] == []
    names = re.findall(r"`spcomm (\w+)", commands)
    assert commands.count("\n| `") == 10 and [name for name in names if name not in cli.summaries()] == []
    assert codes.strip().split("\n") == [f"| {code} | {explain.title(code)} |" for code in explain.codes()]


# Made by the commands that their pages show; all others by scripts of ours.
MADE_BY_HAND = {"simulate_barrier.png", "volume.png"}
PICTURES = ROOT / "docs" / "pictures"


def shown(path):
    """(file, alternative text) of the pictures of a page, and of their dark form if they have a light one."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = [(name, " ".join(alt.split())) for alt, name in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", text)]
    for tag in re.findall(r"<img[^>]*>", text):
        found.append((re.search(r'src="([^"]*)"', tag)[1], re.search(r'alt="([^"]*)"', tag)[1]))
    for name, alt in found:
        yield path.parent / name, alt
        if "-light." in name:
            yield path.parent / name.replace("-light.", "-dark."), alt


@pytest.fixture(scope="module")
def pictures():
    """Where each picture is shown, and with which alternative text."""
    found = {}
    for page in [ROOT / "README.md", *files(".md", below="docs")]:
        for picture, alt in shown(page):
            found.setdefault(picture.resolve(), []).append((relative(page), alt))
    return found


def test_every_picture_is_shown_and_has_an_alternative_text(pictures):
    assert {path.name for path in PICTURES.iterdir()} == {path.name for path in pictures}
    fail_with(
        [
            f"{page} shows {path.name} as {alt!r}"
            for path, at in pictures.items()
            for page, alt in at
            if not alt
        ]
    )


def test_pictures_are_made_by_scripts(monkeypatch):
    """Each picture of screens.py, and each drawing, is there in light and dark, and small."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import gallery
    import pages
    import screens

    of_screens = {
        f"{name}-{scheme}" for name in screens.SCREENS.keys() - screens.ANIMATED for scheme in screens.SCHEMES
    }
    of_screens |= {path.stem for path in pages.drawings()}
    assert {path.stem for path in PICTURES.iterdir() if path.stem.endswith(screens.SCHEMES)} == of_screens
    examples = {name for arguments in gallery.ARGUMENTS.values() for name in arguments}
    others = [path.name for path in PICTURES.iterdir() if path.stem not in of_screens]
    made = examples | MADE_BY_HAND | {f"{name}.gif" for name in screens.ANIMATED}
    fail_with(
        [f"no script makes {name}" for name in others if name not in made and not name.startswith("bench-")]
    )
    fail_with([f"{path.name} is too large" for path in PICTURES.iterdir() if path.stat().st_size > 64 << 10])


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*.svg")), ids=lambda path: path.name)
def test_a_screen_is_of_no_machine_and_needs_no_network(path):
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(
        r"https?:|@import|url\((?!#)|<script|/home/(?!ann/)|/root|/tmp|127\.0\.0\.1|localhost", text
    )


def test_something_is_near_everything(monkeypatch):
    """The table that `make near` reads has a row for each folder of sources, and each test that it names is there."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import near

    rows = near.table()
    sources = [
        relative(path)
        for folder in ("csrc", "spcomm")
        for path in files(".c", ".h", ".py", ".pyx", below=folder)
    ]
    assert [path for path in sources if not near.nearest(path, rows)] == []
    named = {part for tests in rows.values() for part in re.split(" -[km] ", tests)[0].split()}
    assert [name for name in [*rows, *named] if not (ROOT / name).exists()] == []


def prose(text):
    """Without what stands in blocks and in code, where a bracket or a # means something else."""
    text = re.sub(r"^( *)(```+|~~~+).*?^ *\2 *$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", lambda match: match.group().strip("`"), text)


def anchors(path):
    """The names of a page's headings in links, by the rules of code hosts (and of MyST)."""
    found = set()
    for title in re.findall(r"^#{1,6} (.*)$", prose(path.read_text()), re.MULTILINE):
        title = re.sub(r"\]\([^)]*\)", "", title).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        found.add(slug if slug not in found else f"{slug}-1")
    return found


def links(path):
    """(file, anchor) of all links of a page that stay in the repository."""
    for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", prose(path.read_text())):
        name, _, anchor = target.partition("#")
        yield (path.parent / name if name else path), anchor


def test_links_lead_somewhere():
    complaints, count = [], 0
    for path in files(".md"):
        for target, anchor in links(path):
            count += 1
            if not target.exists():
                complaints.append(f"{relative(path)} links to {target}, which is not there")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                complaints.append(
                    f"{relative(path)} links to {anchor} in {target.name}, which has no such heading"
                )
    assert count > 100
    fail_with(complaints)


def test_named_files_exist():
    """A path in backquotes that starts with a folder of ours exists, or is a public header; <noun> is any."""
    complaints = []
    for path in [*existing(), *files(".md", below="docs")]:
        names = re.findall(
            r"`((?:csrc|spcomm|tests|examples|scripts|docs|\.ci|\.github)/[^`\s]*)`", path.read_text()
        )
        for name in names:
            pattern = re.sub(r"<[^>]+>|NN", "*", name).rstrip("/")
            if not list(ROOT.glob(pattern)) and not list((ROOT / "csrc" / "include").glob(pattern)):
                complaints.append(f"{relative(path)} names {name}")
    fail_with(complaints)


def test_documents_named_in_sources_exist():
    """`(NAME 4)` is section 4 of NAME.md, or of a paper."""
    known = {path.stem for path in files(".md")} | {"ACLMPL"}
    fail_with(
        [
            f"{relative(path)} names {name}, which is not in the repository"
            for path in files(".c", ".h", ".hpp", ".py", ".pyx", ".pxd")
            for name in re.findall(r"(?:\(|, )([A-Z]{5,}) \d", path.read_text())
            if name not in known
        ]
    )


def test_changelog_has_this_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
