#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""``figures.py``: measures the papers' figures on this machine, and writes the example in docs/howto/bench.md anew.

Run it by ``make figures`` on a machine that does nothing else; ``make figures ARGS="--from FILE"`` draws an earlier
measurement. Look at the differences before they are committed.
"""

import sys
import textwrap
from pathlib import Path

from spcomm.bench import figures, figures_command, plot
from spcomm.bench.results_file import load

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "howto" / "bench.md"
PICTURES = ROOT / "docs" / "pictures"
PREFIX = "bench-"
MEASURED = ROOT / "build" / "figures"

EXAMPLE = "\nMeasured on "  # from here to the end of the page


def main(words: list[str]) -> int:
    words = [*words, "--out", str(MEASURED)]
    code = figures_command.main(words)
    if code:
        return code
    given = vars(figures_command.parser().parse_args(words))
    found = given["from"] or load(MEASURED / figures_command.RESULTS)
    plot.draw_all(PICTURES, figures.FIGURES, found, PREFIX)
    text = plot.markdown(figures.FIGURES, found, f"../pictures/{PREFIX}")
    page = PAGE.read_text(encoding="utf-8").partition(EXAMPLE)[0]
    PAGE.write_text(f"{page}\n{wrapped(text)}\n", encoding="utf-8")
    return 0


def wrapped(text: str) -> str:
    """Break the paragraphs into lines, and put the headings below the page's own; pictures stay as they are."""
    return "\n\n".join(
        f"#{one}"
        if one.startswith("#")
        else one
        if one.startswith("!")
        else textwrap.fill(one, 120, break_on_hyphens=False)
        for one in text.split("\n\n")
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
