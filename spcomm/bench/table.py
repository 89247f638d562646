# SPDX-License-Identifier: MIT
"""Plain text tables."""

from collections.abc import Sequence

from spcomm.text import aligned, widths


def render(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Format a table: the columns `left` are flush left, all others flush right."""
    rule = ["─" * column for column in widths([header, *rows])]
    return aligned([header, rule, *rows], left, indent="").removesuffix("\n")


def number(value: float) -> str:
    """Format with three significant digits, without an exponent."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def percent(share: float) -> str:
    """
    >>> percent(0.05), percent(0.0512), percent(1.234)
    ('5 %', '5.1 %', '123 %')
    """
    return f"{100 * share:.{1 if share < 0.1 else 0}f}".removesuffix(".0") + " %"
