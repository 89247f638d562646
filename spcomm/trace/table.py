# SPDX-License-Identifier: MIT
"""Numbers with units, and shares of a whole, as text."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def seconds(microseconds: float) -> str:
    """`1.50 s`, `12.3 ms`, `0.80 µs`: three significant digits."""
    return _scaled(microseconds, ((1e6, "s"), (1e3, "ms"), (1, "µs")))


def size(count: int) -> str:
    """`800 B`, `1.50 MB`; units are powers of 1000."""
    if count < 1000:
        return f"{count} B"
    return _scaled(count, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")))


def _scaled(value: float, units: "tuple[tuple[float, str], ...]") -> str:
    """Return the value in the largest unit that it fills, rounded: 999.6 µs are `1.00 ms`."""
    for factor, unit in units:
        if abs(value) >= 0.9995 * factor:
            return f"{_three(value / factor)} {unit}"
    return f"{_three(value / units[-1][0])} {units[-1][1]}"


def _three(value: float) -> str:
    size = abs(value)
    digits = 0 if size >= 99.95 or value == 0 else 1 if size >= 9.995 else 2
    return f"{value:.{digits}f}" if round(size, digits) else "0"


def shares(parts: "Sequence[float]", whole: float) -> "list[str]":
    """`12.5 %` of each part, if all parts together are the whole; of nothing there is no share.

    They add up to 100.0, as far as they can: a part above zero is never `0.0 %`, and a part below the whole never
    `100.0 %`.
    """
    if whole <= 0:
        return ["-"] * len(parts)
    exact = [max(0.0, 1000 * part / whole) for part in parts]
    found = [int(share) for share in exact]
    left = round(sum(exact)) - sum(found)
    for at in sorted(range(len(parts)), key=lambda at: found[at] - exact[at])[: max(0, left)]:
        found[at] += 1
    return [percent(tenths / 1000, part / whole) for tenths, part in zip(found, parts, strict=True)]


def percent(rounded: float, share: float) -> str:
    """Return `12.5 %`; `share` shows whether there is something, and whether it is all."""
    text = f"{100 * rounded:.1f} %"
    if text in ("0.0 %", "-0.0 %"):
        return "<0.1 %" if share > 1e-9 else "0.0 %"
    return ">99.9 %" if text == "100.0 %" and share < 1 - 1e-9 else text
