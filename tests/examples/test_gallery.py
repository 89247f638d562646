# SPDX-License-Identifier: MIT
"""docs/examples.md shows what the examples say, print and draw today: scripts/gallery.py makes it."""

import importlib.util
import re

import numpy as np
import pytest

from test_examples import EXAMPLES
from test_rendering import pixels

SCRIPT = EXAMPLES.parent / "scripts" / "gallery.py"
if not SCRIPT.exists():
    pytest.skip("the gallery is made, and tested, in a checkout", allow_module_level=True)
SPEC = importlib.util.spec_from_file_location("gallery", SCRIPT)
gallery = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(gallery)
SHOWN = gallery.examples()
REMEDY = "run scripts/gallery.py, and look at the differences"


def printed(example):
    """The output of an example on the page."""
    found = re.search(rf"^\$ {re.escape(example.command)}\n(.*?)^```$", gallery.PAGE.read_text(), re.M | re.S)
    assert found, f"docs/examples.md has no output of {example.command}: {REMEDY}"
    return found.group(1)


def test_the_page_says_what_the_examples_say():
    outputs = {example.name: printed(example) for example in SHOWN}
    assert gallery.page(SHOWN, outputs) == gallery.PAGE.read_text(), REMEDY


@pytest.mark.stress
@pytest.mark.parametrize("example", SHOWN, ids=lambda example: example.name)
def test_the_page_shows_what_the_example_prints_and_draws(tmp_path, example):
    assert gallery.masked(gallery.run(example, tmp_path)) == gallery.masked(printed(example)), REMEDY
    if example.picture:
        seen = pixels(tmp_path / example.picture).astype(int)
        shown = pixels(gallery.PICTURES / example.picture).astype(int)
        assert seen.shape == shown.shape
        assert (abs(seen - shown) > 3).mean() < 0.02, REMEDY  # sines differ in their last bits elsewhere


def test_only_what_varies_is_masked():
    kept = "148933 primes up to 2000000, at most 41538 on a node; the last is 1999993\n"
    assert gallery.masked(kept) == kept
    same = gallery.masked(
        "10 strips on 4 nodes: 0.132 s\nπ ≈ 3.14, 8.9e-16 from\n       8 bytes:      0.69 µs,  12 MB/s\n"
    )
    assert same == "10 strips on 4 nodes: # s\nπ ≈ 3.14, # from\n       8 bytes: # µs, # MB/s\n"


def test_pictures_of_the_page_are_there():
    names = re.findall(r"\(pictures/(\S+)\)", gallery.PAGE.read_text())
    assert names and all(np.prod(pixels(gallery.PICTURES / name).shape) < 600_000 for name in names)
