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
    """Write the 2-D array `values` to the file `name`, the smallest value dark, the largest bright.

    Where the file cannot be written, it goes to the folder for temporary files. Returns the whole path.
    """
    data = encode(values)
    path = Path(name).resolve()
    try:
        path.write_bytes(data)
    except OSError:
        path = Path(tempfile.mkdtemp(prefix="spcomm-"), path.name)
        path.write_bytes(data)
    return path


def encode(values):
    """The bytes of a PNG file: 8 bits a channel, no filter (PNG specification, sections 5 and 11)."""
    low, high = values.min(), values.max()
    scaled = (values - low) / (high - low or 1.0)
    stops = np.linspace(0, 1, len(COLOURS))
    pixels = np.stack([np.interp(scaled, stops, channel) for channel in COLOURS.T], axis=-1).astype(np.uint8)
    height, width, _ = pixels.shape
    lines = np.zeros((height, 1 + 3 * width), np.uint8)  # each line begins with the number of its filter
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(lines.tobytes())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
