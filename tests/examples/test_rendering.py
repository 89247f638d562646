# SPDX-License-Identifier: MIT
"""The examples that divide their nodes in a way of their own: any number of them, and the pictures of the documents."""

import re
import struct
import zlib

import numpy as np
import pytest

from programs import ok, run
from test_examples import EXAMPLES

PICTURES = EXAMPLES.parent / "docs" / "pictures"
RENDERERS = {"volume": "volume.py", "spheres": "20_spheres.py"}


def pixels(path):
    """The pixels of a PNG file, by the specification and not by what the examples think of it."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind] = chunks.get(kind, b"") + body
        at += 12 + length
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (rest, list(chunks)) == ([8, 2, 0, 0, 0], [b"IHDR", b"IDAT", b"IEND"])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert (lines[:, 0] == 2).all()  # filter "up": each line is the difference from the one above
    return np.cumsum(lines[:, 1:], axis=0, dtype=np.uint8).reshape(height, width, 3)


@pytest.mark.parametrize("name", ["heat", "rgb"])
def test_a_picture_is_what_was_given(tmp_path, monkeypatch, name):
    monkeypatch.syspath_prepend(EXAMPLES)
    import picture

    if name == "rgb":
        given = np.random.default_rng(7).integers(256, size=(5, 9, 3), dtype=np.uint8)
        assert np.array_equal(pixels(picture.save_png(tmp_path / "x.png", given)), given)
    else:
        shown = pixels(picture.save_png(tmp_path / "x.png", np.linspace(0, 1, 12).reshape(3, 4)))
        assert shown[0, 0].tolist() == [8, 10, 40] and shown[2, 3].tolist() == [255, 255, 230]


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 6, 8])
def test_matrices_on_any_grid(tmp_path, nodes):
    result = ok(run(tmp_path, nodes, "", program=EXAMPLES / "14_matrices.py", arguments=[61]))
    assert result.out.endswith("checked: one node finds the same\n")


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 3, 8])
@pytest.mark.parametrize("name", RENDERERS)
def test_the_picture_is_that_of_the_documents(tmp_path, name, nodes):
    path = tmp_path / "seen.png"
    result = ok(run(tmp_path, nodes, "", program=EXAMPLES / RENDERERS[name], arguments=[path]))
    assert re.search(r"^checked: one node (sees|draws) the same", result.out, re.MULTILINE)
    seen, shown = (pixels(each).astype(int) for each in (path, PICTURES / f"{name}.png"))
    assert seen.shape == shown.shape
    # Where sines differ in their last bits, what is nearer at the rim of something may be something else.
    assert (abs(seen - shown) > 3).mean() < 1e-3
