# SPDX-License-Identifier: MIT
"""Many small programs in one text file, each with what must come of it: wrong programs, attacks, inputs of fuzzers.

    import spcomm              the lines before the first title: an opening for programs that import nothing
    === receives               a title of several entries, if there are groups of them
    == one_forgets: A sentence about it.
    run: -n 4                  lines of a word and a text; each test has words of its own
    says: SP101 …
    comm.recv(1)               the program, to the next title
    -- helpers/second.py       another file that it needs, to the next one's name

A program is written to a file when it runs. Its lines count from the first one there: the opening's, or its own.
"""

import re
from dataclasses import dataclass

TITLE = re.compile(r"^(===?) (.*)\n", re.MULTILINE)
OTHER_FILE = re.compile(r"^-- (.*)\n", re.MULTILINE)
IMPORTS = re.compile(r"^(import|from) ", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    suffix: str
    group: str
    name: str
    head: tuple
    program: str
    opening: str

    def all(self, word):
        """The texts of all lines of its head with this word."""
        return [text for found, text in self.head if found == word]

    def get(self, word):
        """The text of the first of them; empty if there is none."""
        return next(iter(self.all(word)), "")

    @property
    def file(self):
        return self.name + self.suffix

    @property
    def files(self):
        """{name: text}, the program first."""
        program, *others = OTHER_FILE.split(self.program)
        opening = "" if IMPORTS.search(program) else self.opening
        return {self.file: opening + program, **dict(zip(others[::2], others[1::2], strict=True))}

    def write(self, folder):
        """Write all its files into a folder; the path of the program."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return folder / self.file

    def compile(self):
        """Raise SyntaxError unless all its files are Python: linters do not see them."""
        for name, text in self.files.items():
            compile(text, name, "exec")


def read(path, words):
    """The entries of a file, in its order; `words` are those of their heads. Programs of c.txt are in C."""
    opening, *parts = TITLE.split(path.read_text())
    opening = f"{opening.strip()}\n" if opening.strip() else ""
    said = re.compile(f"({'|'.join(words.split())}): (.*)")
    group, found = path.stem, []
    for mark, title, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        name, _, sentence = title.partition(": ")
        if mark == "===":
            group = title
            continue
        lines, head = text.strip("\n").split("\n"), []
        while lines and (match := said.fullmatch(lines[0])):
            head.append(match.groups())
            del lines[0]
        assert sentence, f"{path.name}: {title}: what is it?"
        program = "".join(f"{line}\n" for line in lines)
        found.append(Entry(".c" if path.stem == "c" else ".py", group, name, tuple(head), program, opening))
    names = {(entry.group, entry.name) for entry in found}
    assert len(names) == len(found), f"{path.name} has two entries of one name"
    return found
