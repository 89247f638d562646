#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""``figures.py``: measures the papers' figures on this machine, and writes their page of the documentation anew.

Run it by ``make figures`` on a machine that does nothing else; ``make figures ARGS="--from FILE"`` draws an earlier
measurement. Look at the differences before they are committed.
"""

import sys
import textwrap
from pathlib import Path

from spcomm.bench import figures, figures_command, plot
from spcomm.bench.results_file import load

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "howto" / "bench_figures.md"
PICTURES = ROOT / "docs" / "pictures"
PREFIX = "bench-"
MEASURED = ROOT / "build" / "figures"

BEGINNING = """\
# The papers' figures, then and now

`spcomm bench figures` measures what the four papers measured, and draws it with their own numbers beside. It takes
three minutes at most, and says so first; `--full` sweeps all sizes and up to 96 nodes. On a busy machine the time may
be up before the last round; peers lose points before spcomm does, and the page names every point with fewer rounds.
Ctrl-C draws what was measured until then.

```
python -m pip install 'spcomm[bench,model]' pyzmq    # peers to compare with, and matplotlib
spcomm bench figures                                 # spcomm-figures/index.html and the pictures
spcomm bench figures --from spcomm-figures/measurements.json    # draw them again
```

`spcomm-figures/measurements.json` keeps [all samples](../reference/bench_json.md). The rest of this page is an example
of the result.
"""


def main(words: list[str]) -> int:
    words = [*words, "--out", str(MEASURED)]
    code = figures_command.main(words)
    if code:
        return code
    found = figures_command.parser().parse_args(words).measured or load(MEASURED / figures_command.RESULTS)
    plot.draw_all(PICTURES, figures.FIGURES, found, PREFIX)
    text = plot.markdown(figures.FIGURES, found, f"../pictures/{PREFIX}")
    PAGE.write_text(f"{BEGINNING}\n{wrapped(text)}\n", encoding="utf-8")
    return 0


def wrapped(text: str) -> str:
    """Break the paragraphs into lines; headings and pictures stay as they are."""
    return "\n\n".join(
        one if one.startswith(("#", "!")) else textwrap.fill(one, 120, break_on_hyphens=False)
        for one in text.split("\n\n")
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
