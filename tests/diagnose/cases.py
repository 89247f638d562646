# SPDX-License-Identifier: MIT
"""Wrong programs, and what must be said of each: the entries (entries.py) of wrong/python.txt and wrong/c.txt.

    run: -n 2 --start exec      the options; `{}` stands for the program where it is not simply the last word
    says: SP101 both nodes …    the code, and the headline; `…` stands for anything
    circle: 0 → 1 → 0           if there must be one
    hint: let one node send     what must be found below the table

A line at which nodes wait is marked with them and the call, and at last the function that it is in:
`# <- node 0: barrier() | nodes 1-3: recv(…) in step`.
"""

import re
from pathlib import Path

import entries

FOLDER = Path(__file__).parent / "wrong"
MARKS = re.compile(r" <- (.*?)(?: in (\w+))?(?: \*/)?$")


class Case:
    """The expectations of one program."""

    def __init__(self, entry):
        self.entry, self.name, self.run = entry, entry.name, entry.get("run")
        self.code, self.headline = entry.get("says").split(" ", 1)
        self.circle, self.hint = entry.get("circle"), entry.get("hint")
        assert self.run and self.hint, self.name

    def command(self, program):
        """The words after `spcomm run`."""
        words = self.run.split()
        named = "{}" in words or "-m" in words
        return [str(program) if word == "{}" else word for word in words] + ([] if named else [str(program)])

    def rows(self):
        """The rows that the table must have: (nodes, call, place)."""
        return sorted(
            (*mark.split(": ", 1), *place(Path(name), number, mark, marks[2]))
            for name, text in self.entry.files.items()
            for number, line in enumerate(text.splitlines(), 1)
            if (marks := MARKS.search(line))
            for mark in marks[1].split(" | ")
        )


def place(path, number, mark, function):
    """As it is shown; C programs and stopped nodes tell no lines."""
    if path.suffix == ".c" or "stopped" in mark:
        return ()
    return (f"{path.name}:{number}" + (f" in {function}" if function else ""),)


CASES = [
    Case(entry)
    for language in ("python", "c")
    for entry in entries.read(FOLDER / f"{language}.txt", "run says circle hint")
]


def found(code):
    """The programs that are about one code, by name."""
    return sorted((case for case in CASES if case.code == code), key=lambda case: case.name)


def matches(pattern, text):
    """`…` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), text) is not None


def differences(case, err):
    """The report's errors: texts that stderr lacks, or has too much; empty if all is as it must be."""
    lines = err.splitlines()
    heads = [number for number, line in enumerate(lines) if is_head(case, line)]
    if len(heads) != 1:
        return f"{len(heads)} reports of {case.code} {case.headline!r}"
    body = lines[heads[0] + 1 :]
    table = [line for line in body if re.match(r"  nodes? \d", line)]
    rows = sorted(tuple(re.split(r"  +", line.strip())) for line in table)
    complaints = []
    wanted = case.rows()
    if len(rows) != len(wanted) or not all(
        len(row) == len(wants) and all(map(matches, wants, row))
        for wants, row in zip(wanted, rows, strict=True)
    ):
        complaints.append("rows:\n" + "\n".join(map(str, rows)) + "\nwanted:\n" + "\n".join(map(str, wanted)))
    circles = [line.removeprefix("  circle: ") for line in body if line.startswith("  circle: ")]
    if circles != ([case.circle] if case.circle else []):
        complaints.append(f"circles: {circles}, wanted: {case.circle!r}")
    if case.hint not in "\n".join(body):
        complaints.append(f"no hint {case.hint!r}")
    if f"(spcomm explain {case.code})" not in err:
        complaints.append("nothing said of spcomm explain")
    if "<module>" in err or "Traceback" in err:
        complaints.append("something that is not the user's")
    return "\n".join(complaints)


def is_head(case, line):
    if case.code == "SP101":
        return matches(f"spcomm: DEADLOCK — {case.headline}", line)
    return matches(f"spcomm: warning: {case.headline}     (spcomm explain {case.code})", line)
