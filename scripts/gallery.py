#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""``gallery.py``: writes docs/examples.md and its pictures, from the docstrings, outputs and pictures of the examples.

Run it with the Python of a built checkout (``.venv/bin/python scripts/gallery.py``) after a change of an example, and
look at the differences. tests/examples/test_gallery.py runs the examples again and compares.
"""

import ast
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import NamedTuple

import spcomm

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "examples.md"
PICTURES = ROOT / "docs" / "pictures"

# Groups of examples: the title above the first of each.
TITLES = {
    1: "First steps",
    3: "A part for each node, and a sum",
    6: "Dividing work",
    8: "Neighbours",
    11: "All-to-all exchange",
    16: "Workers, pipelines, and how to know the end",
    19: "Time, pictures, measuring, bytes",
}
NAMES = {
    "pi": "π",
    "monte_carlo": "Monte Carlo",
    "heat_rod": "Heat in a rod",
    "heat_plate": "Heat on a plate",
    "life": "The game of life",
    "nbody": "n-body",
    "odd_even_sort": "Odd-even sort",
    "kmeans": "k-means",
    "master_workers": "Master and workers",
}
NODES = {"21_latency.py": 2, "22_byte_order.py": 2}  # the others run on four
ARGUMENTS = {
    "06_mandelbrot.py": ["mandelbrot.png"],
    "07_word_count.py": ["LICENSE"],  # the documents change too often
    "09_heat_plate.py": ["1000", "heat.png"],
    "11_nbody.py": ["200", "nbody.png"],
    "15_kmeans.py": ["20000", "kmeans.png"],
    "20_spheres.py": ["spheres.png"],
}
# The parts of outputs that differ from run to run: times, rounding errors, and which node was quicker.
VARYING = re.compile(
    r" *\d[\d.]*(?= (?:s|µs|MB/s)\b)|\d\.\d+e[-+]\d+|(?<=^pull ).*|(?<=by the nodes: ).*", re.MULTILINE
)

BEGINNING = """\
# Examples

Each of these programs shows one idea, has fewer than 60 lines, runs on any number of nodes, and checks its result
against that of one node. They are in the folder `examples` of the checkout.

The output of each program is shown below its command. Times were taken on a machine with two cores, which four nodes
have to share. At a terminal each line begins with its node, as in `[0] `. Programs that are given a file name draw the
pictures.

"""
END = """\
## In C and C++

`examples/c` has `pi.c`, `heat.c` and `token_ring.c`; `examples/cxx` has the same three with the functions of the
SpeedesComm paper, and `work_queue.cpp`, whose work creates new work in rounds of coordinated messages. The first lines
of each show how to compile it. See [spcomm in C](reference/c.md) and [in C++](reference/cxx.md).

## Longer programs

- `examples/time_buckets.py`: a simulation whose nodes work ahead while others still compute, and undo what was wrong
  ("breathing time buckets"), with a fuzzy barrier, `SimTime` and coordinated messages.
- `examples/volume.py`: a picture of a cloud, of which each node looks through a part; see [Make one picture on all
  nodes](howto/rendering.md).
"""


class Example(NamedTuple):
    """The description of an example, from its docstring."""

    path: Path
    idea: str
    more: str
    look: str
    attempt: str

    @property
    def name(self):
        return self.path.name

    @property
    def number(self):
        return int(self.name[:2])

    @property
    def title(self):
        name = self.path.stem[3:]
        return NAMES.get(name, name.replace("_", " ").capitalize())

    @property
    def nodes(self):
        return NODES.get(self.name, 4)

    @property
    def arguments(self):
        return ARGUMENTS.get(self.name, [])

    @property
    def command(self):
        return " ".join(["spcomm run -n", str(self.nodes), f"examples/{self.name}", *self.arguments])

    @property
    def picture(self):
        return next((name for name in self.arguments if name.endswith(".png")), None)

    @property
    def uses(self):
        """The operations of spcomm in it, in the order of their first use."""
        words = re.findall(
            r"\b(?:comm|row|column)\.(\w+)|spcomm\.(op)\b|import (SimTime)", self.path.read_text()
        )
        names = dict.fromkeys("".join(found) for found in words)
        return [name for name in names if callable(getattr(spcomm.Comm, name, None)) or hasattr(spcomm, name)]


def examples():
    return [read(path) for path in sorted((ROOT / "examples").glob("[0-9]*.py"))]


def read(path):
    said = ast.get_docstring(ast.parse(path.read_text()))
    idea, _, rest = said.partition("\n\n")
    _, _, rest = rest.partition("\n\n")  # the command line
    more, look, attempt = re.fullmatch(
        r"(.*?)\s*^Look: (.*)^Try: (.*)", rest, re.DOTALL | re.MULTILINE
    ).groups()
    return Example(path, *(" ".join(part.split()) for part in (idea, more, look, attempt)))


def run(example, folder):
    """The output of an example; its picture is drawn into the folder, whatever has drawn one into the checkout."""
    inputs = [word for word in example.arguments if word != example.picture and (ROOT / word).is_file()]
    arguments = [str(ROOT / word) if word in inputs else word for word in example.arguments]
    line = [
        sys.executable,
        "-m",
        "spcomm",
        "run",
        "-n",
        str(example.nodes),
        "--no-label",
        example.path,
        *arguments,
    ]
    out = subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True, timeout=120).stdout
    out = out.replace(f"{Path(folder).resolve()}/", "")
    return "".join(f"{text.rstrip()}\n" for text in out.rstrip().splitlines())


def masked(text):
    return VARYING.sub(lambda found: " #" if found.group().startswith(" ") else "#", text)


def wrapped(text, indent=""):
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def section(example, output):
    lines = [f"### {example.number}. {example.title}", "", wrapped(f"{example.idea} {example.more}".rstrip())]
    lines += ["", "```", f"$ {example.command}", f"{output}```", ""]
    if example.picture:
        lines += [f"![{example.title}](pictures/{example.picture})", ""]
    lines += [
        wrapped(f"- **Look:** {example.look}", "  "),
        wrapped(f"- **Try:** {example.attempt}", "  "),
        "",
    ]
    uses = ", ".join(f"`{name}`" for name in example.uses)
    lines += [wrapped(f"Source: [{example.name}](../examples/{example.name}), with {uses}."), ""]
    return "\n".join(lines)


def index(shown):
    """The operations and the examples that use them."""
    where = {}
    for example in shown:
        for name in example.uses:
            where.setdefault(name, []).append(f"{example.number} {example.title}")
    rows = [f"| `{name}` | {', '.join(where[name])} |" for name in sorted(where)]
    return "\n".join(["## Which operation is used where", "", "| | |", "| --- | --- |", *rows, "", ""])


def page(shown, outputs):
    """The whole page; `outputs` by the names of the examples."""
    parts = [BEGINNING]
    for example in shown:
        if example.number in TITLES:
            parts.append(f"## {TITLES[example.number]}\n\n")
        parts.append(section(example, outputs[example.name]) + "\n")
    return "".join([*parts, index(shown), END])


def main():
    shown = examples()
    with tempfile.TemporaryDirectory() as folder:
        outputs = {example.name: run(example, folder) for example in shown}
        for example in shown:
            if example.picture:
                (PICTURES / example.picture).write_bytes(Path(folder, example.picture).read_bytes())
    PAGE.write_text(page(shown, outputs), encoding="utf-8")


if __name__ == "__main__":
    main()
