# SPDX-License-Identifier: MIT
"""Plain text tables."""

import unicodedata
from collections.abc import Sequence


def width(text: str) -> int:
    """Columns that the text takes in a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def pad(text: str, columns: int, right: bool) -> str:
    space = " " * (columns - width(text))
    return space + text if right else text + space


def render(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """A table: the columns `left` start at their left edge, all others end at their right edge."""
    columns = [max(width(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [pad(cell, columns[i], i not in left) for i, cell in enumerate(cells)]
        return "  ".join(padded).rstrip()

    rule = "  ".join("─" * column for column in columns)
    return "\n".join([line(header), rule, *(line(row) for row in rows)])


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"
