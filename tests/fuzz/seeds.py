# SPDX-License-Identifier: MIT
"""The corpus: seeds, which are made here, and what fuzzing has found, found.txt (entries.py), as digits.

python tests/fuzz/seeds.py FOLDER          write all of it, to files FOLDER/<noun>/<name>
python tests/fuzz/seeds.py --keep FOLDER   add the files that are new there to found.txt
"""

import shutil
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import entries

FOUND = Path(__file__).with_name("found.txt")
VERSION = 11  # SPC_FRAME_VERSION; of another one a reader refuses everything
# The first byte of an input: see fuzz_frame.c and fuzz_arrival.c.
START, BODY_SUMS, HEADER_SUMS, SMALL_BODIES, REFUSE = 1, 2, 4, 8, 16
OPERATION, TYPES, LENGTH, ROW, PLACE = 1, 2, 4, 8, 16


def frame(kind=2, body=b"", *, version=VERSION, flags=0, count=0, length=None, zero=0, rest=b"\0" * 16):
    """A frame without its sums; `rest` is total_bytes and offset."""
    length = len(body) if length is None else length
    start = struct.pack("<4sBBHIHHiHHQ", b"spcf", version, kind, flags, 9, 1, 2, -3, 4, 5, 6)
    return start + rest + struct.pack("<IBBHII", length, 0, zero, count, 0, 0) + body


def frames():
    sums = BODY_SUMS | HEADER_SUMS
    good = b"".join(frame(kind, bytes(range(kind * 7))) for kind in range(1, 15))
    yield "empty", bytes([0, 0])
    yield "no_sums", bytes([0, 3]) + frame(body=b"x")
    yield "no_body_sums", bytes([HEADER_SUMS, 3]) + frame(body=b"x" * 9)
    yield "every_kind", bytes([sums, 4]) + good
    yield "every_kind_refused", bytes([sums | REFUSE | 3 << 5, 5]) + good
    yield "then_noise", bytes([sums, 6]) + good + b"noise" * 20
    yield "cut_short", bytes([sums, 7]) + good[:-3]
    yield (
        "lengths",
        bytes([sums, 8]) + b"".join(frame(body=b"y" * n) for n in (0, 1, 15, 16, 17, 48, 0, 0, 100)),
    )
    yield "bodies_too_long", bytes([sums | SMALL_BODIES, 9]) + frame(body=b"z" * 100) + frame(body=b"z" * 101)
    yield "length_too_long", bytes([sums, 10]) + frame(length=(1 << 18) + 1)
    yield "longest_length", bytes([sums, 11]) + frame(length=1 << 18, body=b"z" * 30)
    yield "other_version", bytes([sums, 12]) + frame() + frame(version=1)
    yield "no_kind", bytes([sums, 13]) + frame() + frame(kind=0)
    yield "no_flag", bytes([sums, 14]) + frame(flags=127) + frame(flags=128)
    yield "not_zero", bytes([sums, 15]) + frame(zero=1)
    yield "ranks", bytes([sums, 16]) + frame(3, b"\1\0\2\0\3\0\4\0", count=4) + frame(3, b"\1\0\2\0", count=3)
    yield "parts", bytes([sums, 17]) + frame(3, b"p" * 20, flags=1, rest=b"\xff" * 16) * 3
    yield "any_start", bytes([sums | START, 18]) + b"?" * 48 + bytes(4) + b"?" * 80


def arrival(fields=(), value=b"", *, first=0, span=1, stamp=0, row=b"", operation=1, operator=0, length=None):
    """An arrival of a member; `fields` are pairs of a type and a count."""
    length = len(value) if length is None else length
    signature = struct.pack("<QQIBBBB", length, 7, 0, operation, operator, 0, len(fields) & 255)
    head = signature + struct.pack("<IIII", first, span, stamp, length)
    return (
        head + b"".join(struct.pack("<II", *field) for field in fields) + row + value + bytes(-len(value) % 8)
    )


def arrivals():
    whole, real, wide = (1, 1), (12, 3), (2, 1)
    number = struct.pack("<q", 40)
    repaired = OPERATION | LENGTH
    yield "none", bytes([0, 4])
    yield "barrier", bytes([0, 4]) + arrival() * 3
    yield "barrier_of_all", bytes([0, 4]) + arrival(span=4)
    yield "gathering", bytes([0, 4]) + b"".join(arrival(value=b"g" * n, first=n) for n in (0, 1, 7, 8, 9))
    yield "row", bytes([0, 3]) + arrival(stamp=5, row=bytes(24)) + arrival(stamp=6, row=b"\xff" * 24, first=1)
    yield "row_cut_short", bytes([0, 4]) + arrival(stamp=5, row=bytes(24))
    yield "length_too_long", bytes([0, 4]) + arrival(value=b"v" * 16, length=2**32 - 1)
    yield "fields_too_many", bytes([0, 4]) + arrival(fields=[whole] * 33, value=number * 33)
    yield "head_cut_short", bytes([0, 4]) + arrival()[:32]
    for operator in range(12):
        values = b"".join(arrival([whole], number, first=member, operator=operator) for member in range(5))
        yield f"whole_{operator}", bytes([repaired, 5]) + values
    yield (
        "overflow",
        bytes([repaired, 2])
        + arrival([whole], b"\xff" * 7 + b"\x7f")
        + arrival([whole], b"\xff" * 7 + b"\x7f", first=1),
    )
    yield "wide", bytes([repaired, 2]) + arrival([wide], number) + arrival([wide], number, first=1)
    yield "two_fields", bytes([repaired | TYPES | PLACE, 3]) + arrival([whole, real], bytes(32)) * 3
    yield (
        "every_type",
        bytes([repaired | PLACE, 2])
        + b"".join(arrival([(kind, 1)], bytes(range(8)) * 3) for kind in range(30)),
    )
    yield (
        "subtrees",
        bytes([repaired, 5]) + arrival([whole], number, span=4) + arrival([whole], number, first=4),
    )
    yield "overlapping", bytes([repaired, 5]) + arrival([whole], number, span=4) * 2
    yield "gap", bytes([repaired, 5]) + arrival([whole], number) + arrival([whole], number, first=2)


def corpus():
    """{noun/name: content}"""
    made = {"frame": frames(), "arrival": arrivals()}
    seeds = {f"{noun}/{name}": content for noun, found in made.items() for name, content in found}
    return seeds | {entry.name: bytes.fromhex(entry.program) for entry in entries.read(FOUND, "")}


def write(folder):
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in corpus().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def keep(folder):
    with open(FOUND, "a") as file:
        for path in sorted(folder.glob("*/*")):
            name, digits = str(path.relative_to(folder)), path.read_bytes().hex()
            if name not in corpus():
                lines = [digits[at : at + 96] for at in range(0, len(digits), 96)]
                print("", f"== {name}: It was found by fuzzing.", *lines, sep="\n", file=file)


if __name__ == "__main__":
    keep(Path(sys.argv[2])) if sys.argv[1] == "--keep" else write(Path(sys.argv[1]))
