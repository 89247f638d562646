# SPDX-License-Identifier: MIT
"""Counts the words of text files: each node takes every n-th line, node 0 adds up.

    spcomm run -n 8 04_word_count.py [FILE ...]

Without files it reads the documents that come with spcomm.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

import spcomm


def own_documents():
    """The documents installed beside the examples, or those of the checkout."""
    above = Path(__file__).resolve().parent.parent
    folder = above / "documents" if (above / "documents").is_dir() else above
    places = [folder.glob("*.md"), folder.glob("docs/**/*.md"), folder.glob("csrc/*.md")]
    return sorted(path for place in places for path in place) or [Path(__file__)]


def read_lines(files):
    try:
        return [
            line for file in files for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
        ]
    except OSError as error:
        raise SystemExit(f"cannot read {error.filename}: {error.strerror}") from error


def count(lines):
    return Counter(word for line in lines for word in re.findall(r"[^\W\d_]+", line.lower()))


comm = spcomm.startup()
files = [Path(name) for name in sys.argv[1:]] or own_documents()
lines = read_lines(files)

comm.barrier()  # all start the clock together
begin = perf_counter()
words = count(lines[comm.rank :: comm.size])
if comm.rank > 0:
    comm.send(words, 0)
else:
    for _ in range(1, comm.size):
        words += comm.recv()  # from whoever is ready
    spent = perf_counter() - begin

    print(f"{len(files)} files, {len(lines)} lines, {words.total()} words, {len(words)} different ones")
    print("most frequent:", ", ".join(f"{word} {times}" for word, times in words.most_common(8)))
    print(f"counted by {comm.size} nodes in {spent:.3f} s")

    begin = perf_counter()
    alone = count(lines)
    print(f"the same on one node: {perf_counter() - begin:.3f} s")
    if words != alone:
        raise SystemExit(f"wrong: one node finds {alone.total()} words, all together {words.total()}")
    print("checked: one node counts the same")
