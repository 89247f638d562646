# SPDX-License-Identifier: MIT
"""Tables, ranks and counted nouns: spcomm/text.py."""

import subprocess
import sys

import pytest

from spcomm.text import aligned, counted, duration_s, printable, ranks_text, size_bytes, whole_number, width


def test_the_first_column_is_flush_left_and_the_others_flush_right():
    assert aligned([("node", "sent"), ("0", "12345"), ("all", "1")]) == (
        "  node   sent\n  0     12345\n  all       1\n"
    )


def test_rows_may_be_short_and_no_line_ends_with_a_blank():
    rows = [("node 0", "recv()", "a.py:1"), ("nodes 1-2", "ended"), ("node 3", "", "")]
    assert aligned(rows, left=None) == ("  node 0     recv()  a.py:1\n  nodes 1-2  ended\n  node 3\n")
    assert aligned([]) == ""


def test_wide_letters_take_two_columns():
    assert aligned([("中", "1"), ("abc", "2")], indent="", gap="|") == "中 |1\nabc|2\n"


@pytest.mark.parametrize(("text", "columns"), [("µs", 2), ("π ≈", 3), ("中", 2), ("e\u0301", 1), ("", 0)])
def test_width(text, columns):
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("0.5", 0.5), ("1e3", 1000), ("5ns", 5e-9), ("10us", 1e-5), ("10µs", 1e-5), ("200ms", 0.2),
     ("90s", 90), ("5m", 300), ("5min", 300), ("8h", 28800), ("2d", 172800), ("0", 0), ("-1", None), ("nan", None),
     ("inf", None), ("", None), ("m", None), ("1_0", None), ("5 weeks", None), ("5mm", None), ("soon", None),
     ("\u0663", None), ("\uff11s", None), (" 1", None), ("1 ", None), ("1\n", None), ("1 s", None)],
)  # fmt: skip
def test_duration(text, seconds):
    assert duration_s(text) == (seconds if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("text", "number"),
    [("4096", 4096), ("0", 0), ("64K", 65536), ("64k", 65536), ("64KB", 65536), ("64KiB", 65536), ("2M", 2 << 20),
     ("1G", 1 << 30), ("7B", 7), ("", None), ("K", None), ("-1", None), ("1.5M", None), ("4X", None), ("4IB", None),
     ("1_0", None), ("٣", None), ("9" * 5000, 10**20)],
)  # fmt: skip
def test_sizes_and_whole_numbers(text, number):
    assert size_bytes(text) == number
    assert whole_number(text) == (number if text.isdigit() and text.isascii() else None)


@pytest.mark.parametrize(
    ("words", "text"),
    [((0, "node"), "0 nodes"), ((1, "node"), "1 node"), ((2, "node"), "2 nodes"),
     ((1, "box", "boxes"), "1 box"), ((3, "box", "boxes"), "3 boxes")],
)  # fmt: skip
def test_counted(words, text):
    assert counted(*words) == text


@pytest.mark.parametrize(
    ("ranks", "text"),
    [([3], "node 3"), ([2, 0, 1], "nodes 0-2"), ([5, 0, 1], "nodes 0-1, 5"), ([1, 3], "nodes 1, 3")],
)
def test_ranks_text(ranks, text):
    assert ranks_text(ranks) == text


def test_printable():
    assert printable("a\tb\n") == "a\tb\n"
    assert printable("a\x1b[2Jb\n", "") == "a\N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}"


def test_it_imports_nothing():
    code = (
        "import sys; before = set(sys.modules); import spcomm.text; print(*sorted(set(sys.modules) - before))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["spcomm", "spcomm.text"]
