# SPDX-License-Identifier: MIT
"""The site that `make docs` makes: without a warning, with everything on it, and its links lead somewhere."""

import html
import importlib.util
import json
import re
import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import pytest

import public
from checkout import ROOT, fail_with

EXTENSION = ROOT / "docs" / "_ext"


def loaded(path):
    """A module by its file, as Sphinx finds those of docs/_ext."""
    specification = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Built once, with warnings as errors."""
    for name in ("sphinx", "furo", "myst_parser", "numpydoc"):
        pytest.importorskip(name, reason=f"{name} is not installed; pip install --group docs")
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-D",
        "spcomm_run_notebooks=0",  # tests/notebook runs them
        "-d",
        folder / "trees",
        ROOT / "docs",
    ]
    answer = subprocess.run([*command, folder / "html"], capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, ""), answer.stderr
    return folder / "html"


@pytest.mark.timeout(600)
def test_a_report_counts_the_lines_that_the_page_shows(site):
    """04_circle.py:7 is the seventh line that a reader sees, and copies."""
    page = html.unescape(re.sub(r"<[^>]*>", "", (site / "tutorial" / "04_deadlock.html").read_text()))
    program = page[page.index("# 04_circle.py\n") :].splitlines()
    assert "04_circle.py:7" in page and "comm.recv(left)" in program[7 - 1], program[:8]
    assert "SPDX" not in page


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_links_lead_somewhere(site):
    found, count = loaded(ROOT / "scripts" / "check-site.py").complaints(site)
    fail_with(found)
    assert count > 1000


@pytest.mark.timeout(600)
def test_every_public_name_has_an_entry(site):
    pages = "".join(page.read_text() for page in (site / "reference" / "api").glob("*.html"))
    fail_with(
        [f"there is no entry for {name}" for name in public.objects() if f'id="spcomm.{name}"' not in pages]
    )


@pytest.mark.timeout(600)
def test_what_is_made_of_sources_is_there(site):
    assert "spcomm_global_sum_int64" in (site / "reference" / "headers" / "spcomm_h.html").read_text()
    assert "--queue-limit" in (site / "reference" / "command.html").read_text()
    assert len(re.findall(r'<section id="sp1\d\d', (site / "reference" / "codes.html").read_text())) >= 8
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" role="img"'
    assert drawing in (site / "internals" / "messages.html").read_text()
    for scheme in ("light", "dark"):
        assert f'src="../_images/floors-{scheme}.svg"' in (site / "internals" / "index.html").read_text()


@pytest.mark.timeout(600)
def test_pictures_follow_the_scheme_and_slides_are_one_file(site):
    start = (site / "index.html").read_text()
    for scheme in ("light", "dark"):
        assert re.search(rf'<img [^>]*class="only-{scheme}" src="_images/timeline-{scheme}.png"', start)
    deck = (site / "teaching" / "deck.html").read_text()
    outline = (ROOT / "docs" / "teaching" / "slides.md").read_text()
    assert deck.count("<section") == len(re.findall(r"^(?:\d+\.|##) ", outline, re.MULTILINE))
    assert deck.count("<details>") > 10 and not re.search(r'\b(?:src="(?!data:)|href=)', deck)
    assert deck.count('<img alt="') == outline.count("](../pictures/") > 5
    page = (site / "notebooks" / "02_fuzzy_barrier.html").read_text()
    assert "This build of the site did not run it" in page and "Its outputs are" not in page


def test_the_sidebar_has_the_groups_of_the_table():
    table = (ROOT / "docs" / "howto" / "index.md").read_text()
    rows = re.findall(r"^\| ([a-z ]+) \| (\[.*)\|$", table, re.MULTILINE)
    groups = re.findall(
        r"<!-- toctree: (.*)\n((?:howto/\w+\n)+)-->", (ROOT / "docs" / "index.md").read_text()
    )
    groups = {name: [line for line in pages.split() if line != "howto/index"] for name, pages in groups}
    told = {
        name.capitalize(): [f"howto/{page}" for page in re.findall(r"\]\((\w+)\.md\)", row)]
        for name, row in rows
    }
    assert groups == told
    pages = {f"howto/{path.stem}" for path in (ROOT / "docs" / "howto").glob("*.md")} - {"howto/index"}
    assert {page for row in told.values() for page in row} == pages


def test_a_site_says_that_a_notebook_does_not_run(tmp_path, monkeypatch):
    """In one sentence, and there is no site."""
    monkeypatch.syspath_prepend(str(EXTENSION))
    pieces = loaded(EXTENSION / "pieces.py")
    script = tmp_path / "render.py"
    script.write_text(
        "import sys\nsys.exit('08_prediction.ipynb: a cell\\n\\x1b[31mImportError\\x1b[0m: scipy')\n"
    )
    monkeypatch.setattr(pieces, "RENDER", script)
    config = SimpleNamespace(spcomm_run_notebooks=True)
    with pytest.raises(SystemExit, match=r"^08_prediction.ipynb did.*: ImportError: scipy ") as raised:
        pieces.run_notebooks(SimpleNamespace(config=config))
    assert "\n" not in str(raised.value)
    config.spcomm_run_notebooks = False
    pieces.run_notebooks(SimpleNamespace(config=config))
    text, _paths = pieces.notebook("02_fuzzy_barrier", "", config)
    assert text.strip().startswith(pieces.WITHOUT_OUTPUTS) and pieces.WITH_OUTPUTS not in text


def test_links_that_lead_nowhere_and_what_needs_a_network_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">b</a><a href="b.html#not">b</a><a href="c.html">c</a>'
        '<script src="https://example.org/some.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="there"></p><a href="https://example.org/none">far</a>```{api}')
    found, count = loaded(ROOT / "scripts" / "check-site.py").complaints(tmp_path)
    assert count == 3
    assert sorted(found) == [
        "a.html links to b.html#not: no such place there",
        "a.html links to c.html: no such file",
        "a.html loads https://example.org/some.js",
        "b.html shows a block that was not understood",
    ]


def test_drawings():
    drawing = loaded(EXTENSION / "drawing.py")
    graph = drawing.parse("a -> b -> c: far\na -> c\nc -> a\nb = the middle\n")
    assert graph.notes == {"a": "", "b": "the middle", "c": ""}
    assert graph.arrows == {("a", "b"): "", ("b", "c"): "far", ("a", "c"): "", ("c", "a"): ""}
    layers, routes = drawing.layers_of(graph)
    assert [[item for item in layer if isinstance(item, str)] for layer in layers] == [["a"], ["b"], ["c"]]
    assert routes["a", "c"] == ["a", (1, ("a", "c")), "c"]
    for right in (False, True):
        text = drawing.svg(graph, right)
        assert (text.count("<rect"), text.count('class="arrow"')) == (3, 4)
        assert "the middle" in text and "far" in text
    with pytest.raises(ValueError, match="line 2"):
        drawing.parse("a -> b\nnonsense")


def test_boxes_do_not_overlap():
    drawing = loaded(EXTENSION / "drawing.py")
    names = [f"box number {number}" for number in range(9)]
    graph = drawing.parse("\n".join(f"top -> {name} -> bottom" for name in names))
    layers, routes = drawing.layers_of(graph)
    place = drawing.arrange(layers, routes, lambda item: 100)
    row = sorted(place[name] for name in names)
    assert all(b - a >= 100 for a, b in pairwise(row))


@pytest.mark.slow
def test_floors_are_those_of_the_sources():
    floors = loaded(EXTENSION / "floors.py")
    arrows = floors.c_includes()
    assert ("segment", "base") in arrows and ("message", "reduce") not in arrows
    assert floors.reduced({("a", "b"), ("b", "c"), ("a", "c")}) == [("a", "b"), ("b", "c")]
    assert ("launch", "config") in floors.python_imports()
    assert floors.modules()["spc_inbox"] == "message" and "spc_comm_private" not in floors.modules()
    around = floors.around("spc_inbox").splitlines()
    assert "spc_inbox -> spc_mailbox" in around
    assert all(line.count("spc_inbox") == 1 for line in around)


def test_headers_become_pages():
    headers = loaded(EXTENSION / "headers.py")
    page = headers.markdown("spcomm/spcomm.h")
    functions = re.findall(
        r"^(?:static inline )?[\w ]+\*?(spcomm_\w+)\(",
        (headers.INCLUDE / "spcomm/spcomm.h").read_text(),
        re.MULTILINE,
    )
    assert len(functions) > 40
    fail_with([f"{name} is not on the page" for name in functions if not re.search(rf"\b{name}\(", page)])
    assert page.count("```") % 2 == 0 and "#ifdef" not in page and "extern" not in page
    assert "`SPCOMM_EWIDE`" in page and "## Barriers (2.2)" in page


def test_each_notebook_has_a_page():
    """The page has the notebook's title, and shows the same with and without outputs."""
    sys.path.insert(0, str(EXTENSION))
    try:
        pieces = loaded(EXTENSION / "pieces.py")
    finally:
        sys.path.remove(str(EXTENSION))
    notebooks = {path.stem: path for path in (ROOT / "examples" / "notebooks").glob("*.ipynb")}
    pages = {path.stem: path for path in (ROOT / "docs" / "notebooks").glob("[0-9]*.md")}
    assert pages.keys() == notebooks.keys()
    for name, path in notebooks.items():
        cells = json.loads(path.read_text())["cells"]
        assert pages[name].read_text().startswith("".join(cells[0]["source"]).partition("\n")[0] + "\n")
        text = pieces.without_outputs({"cells": cells})
        assert all("".join(cell["source"]) in text for cell in cells)
