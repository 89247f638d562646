# SPDX-License-Identifier: MIT
"""The progress bar, on an invented clock and terminal."""

import io
import re

import pytest

from spcomm.bench.progress import BAR_COLUMNS, Progress, about


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_the_estimate_counts_until_there_is_something_to_go_by():
    clock = Clock()
    progress = Progress(100.0, io.StringIO(), clock)
    assert progress.left_s(0.0) == 100.0
    clock.now = 30.0
    assert progress.left_s(0.05) == 70.0
    assert progress.left_s(0.25) == 90.0
    assert progress.left_s(1.0) == 0.0
    clock.now = 500.0
    assert progress.left_s(0.05) == 0.0


def test_nothing_is_written_without_a_terminal():
    stream = io.StringIO()
    progress = Progress(10.0, stream)
    progress("round 1", 0.5)
    progress.clear()
    assert stream.getvalue() == ""


def test_the_bar():
    stream, clock = Terminal(), Clock()
    progress = Progress(100.0, stream, clock)
    clock.now = 20.0
    progress("barrier", 0.25)
    shown = stream.getvalue()
    assert "25%" in shown and "about 60 s left: barrier" in shown
    progress.clear()
    assert progress.bar[0].finished is False


def test_a_narrow_terminal_cuts_the_text_and_not_the_bar(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    progress = Progress(100.0, stream, Clock())
    progress("round 1 of 3, 1 of 2: barrier [2 nodes] and 3 more", 0.5)
    lines = re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", stream.getvalue()).splitlines()
    assert len(lines[-1]) == 40 and lines[-1].endswith("…")
    assert sum(letter in "━╸╺" for letter in lines[-1]) == BAR_COLUMNS
    progress.clear()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "5 s"), (88, "90 s"), (90, "1.5 minutes"), (600, "10 minutes")]
)
def test_about(seconds, text):
    assert about(seconds) == text
