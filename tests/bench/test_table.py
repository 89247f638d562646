# SPDX-License-Identifier: MIT
"""Plain text tables."""

import pytest

from spcomm.bench.table import number, render


def test_columns_are_as_wide_as_their_widest_cell():
    text = render(
        ["work", "spcomm", "verdict"], [["a", "1.25 µs", "reached"], ["longer", "10 µs", ""]], left=(0, 2)
    )
    assert text.splitlines() == [
        "work     spcomm  verdict",
        "──────  ───────  ───────",
        "a       1.25 µs  reached",
        "longer    10 µs",
    ]


def test_a_table_without_rows():
    assert render(["a", "b"], []).splitlines() == ["a  b", "─  ─"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.21449, "0.214"), (1.4999, "1.50"), (12.34, "12.3"), (1249.4, "1249"), (0.0, "0.000")],
)
def test_number(value, text):
    assert number(value) == text
