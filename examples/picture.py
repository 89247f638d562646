# SPDX-License-Identifier: MIT
"""Writes an array as a PNG picture, for the examples; anything else is better done with matplotlib."""

import struct
import tempfile
import zlib
from pathlib import Path

import numpy as np

# From cold to hot: red, green, blue.
COLOURS = np.array(
    [[8, 10, 40], [60, 20, 110], [170, 40, 90], [240, 110, 30], [255, 210, 70], [255, 255, 230]]
)


def save_png(name, values):
    """Write an array to the file `name`: the smallest of 2-D `values` dark, the largest bright; or red, green, blue.

    Colours are an array of shape (height, width, 3) and type uint8. Where the file cannot be written, it goes to the
    folder for temporary files. Returns the whole path.
    """
    data = encode(values if values.ndim == 3 else coloured(values))
    path = Path(name).resolve()
    try:
        path.write_bytes(data)
    except OSError:
        path = Path(tempfile.mkdtemp(prefix="spcomm-"), path.name)
        path.write_bytes(data)
    return path


def coloured(values):
    low, high = values.min(), values.max()
    scaled = (values - low) / (high - low or 1.0)
    stops = np.linspace(0, 1, len(COLOURS))
    return np.stack([np.interp(scaled, stops, channel) for channel in COLOURS.T], axis=-1).astype(np.uint8)


def encode(pixels):
    """The bytes of a PNG file: 8 bits a channel, filter "up" (PNG specification, sections 5, 9 and 11)."""
    height, width, _ = pixels.shape
    lines = np.full((height, 1 + 3 * width), 2, np.uint8)  # each line begins with the number of its filter
    flat = pixels.reshape(height, -1)
    lines[0, 1:] = flat[0]
    lines[1:, 1:] = flat[1:] - flat[:-1]  # what differs from the line above, modulo 256: it packs better
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(lines.tobytes())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
