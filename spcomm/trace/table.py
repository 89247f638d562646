# SPDX-License-Identifier: MIT
"""Tables and numbers with units, as text."""


def aligned(lines: "list[tuple[str, ...]]", indent: str = "  ") -> str:
    """A table whose first column is flush left."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ""
    for first, *rest in lines:
        cells = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        text += f"{indent}{'  '.join([first.ljust(widths[0]), *cells])}".rstrip() + "\n"
    return text


def seconds(microseconds: float) -> str:
    """`1.500 s`, `12.3 ms`, `0.8 µs`: three digits that say something."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if abs(microseconds) >= factor:
            return f"{_three(microseconds / factor)} {unit}"
    return f"{_three(microseconds)} µs"


def _three(value: float) -> str:
    size = abs(value)
    return f"{value:.0f}" if size >= 100 or value == 0 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def size(count: int) -> str:
    """`800 B`, `1.5 MB`; units are powers of 1000."""
    for factor, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= factor:
            return f"{_three(count / factor)} {unit}"
    return f"{count} B"


def share(part: float, whole: float) -> str:
    """`12.5 %`; of nothing there is no share."""
    return f"{100 * part / whole:.1f} %" if whole > 0 else "-"


def ranks(numbers: "list[int]") -> str:
    """`node 3`, `nodes 0, 2`."""
    return f"node{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
