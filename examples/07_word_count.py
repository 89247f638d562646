# SPDX-License-Identifier: MIT
"""The words of text files are counted: each node takes every n-th line, and a reduction adds up the tables.

    spcomm run -n 4 07_word_count.py [FILE ...]

Without files it reads the documents that come with spcomm.
Look: `reduce` takes any operator for any objects; here two Counters are added, along a tree of nodes.
Try: the longest word instead: `max(..., key=len)` on each node, and an operator that keeps the longer of two.
"""

import re
import sys
from collections import Counter
from operator import add
from pathlib import Path
from time import perf_counter

import spcomm


def own_documents():
    """The pages beside the examples, where they are installed and in the checkout."""
    folder = Path(__file__).resolve().parent.parent
    places = [folder.glob("*.md"), folder.glob("docs/**/*.md"), folder.glob("csrc/*.md")]
    return sorted(path for place in places for path in place) or [Path(__file__)]


def count(lines):
    return Counter(word for line in lines for word in re.findall(r"[^\W\d_]+", line.lower()))


comm = spcomm.startup()
files = [Path(name) for name in sys.argv[1:]] or own_documents()
try:
    lines = [line for file in files for line in file.read_text("utf-8", "replace").splitlines()]
except OSError as error:
    raise SystemExit(f"cannot read {error.filename}: {error.strerror}") from error

comm.barrier()  # all start the clock together
begin = perf_counter()
words = comm.reduce(count(lines[comm.rank :: comm.size]), op=spcomm.op(add), algorithm="tree")

if comm.rank == 0:
    spent = perf_counter() - begin
    print(f"{len(files)} files, {len(lines)} lines, {words.total()} words, {len(words)} different ones")
    ranking = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    print("most frequent:", ", ".join(f"{word} {times}" for word, times in ranking[:8]))
    print(f"counted by {comm.size} nodes in {spent:.3f} s")
    begin = perf_counter()
    alone = count(lines)
    print(f"the same on one node: {perf_counter() - begin:.3f} s")
    if words != alone:
        raise SystemExit(f"wrong: one node finds {alone.total()} words, all together {words.total()}")
    print("checked: one node counts the same")
