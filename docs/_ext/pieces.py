# SPDX-License-Identifier: MIT
"""Markdown made from other sources than pages: C headers, the command's own help, the pages of `spcomm explain`.

A block such as ```{header} spcomm/spcomm.h``` is replaced before the page is parsed, so that headings in it are
headings of the page.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import floors
import headers

PAGES = Path(__file__).resolve().parents[2] / "spcomm" / "diagnose" / "pages"


def header(name):
    """What programs include: spcomm/spcomm.h."""
    return headers.markdown(name), [headers.INCLUDE / name]


def commands(_):
    """What spcomm and each of its commands print with --help; new commands are found."""
    from spcomm import cli

    parts = ["```text", help_of(), "```"]
    for name in cli._COMMANDS:
        if name not in ("help", "version"):
            parts += ["", f"## spcomm {name}", "", "```text", help_of(name), "```"]
    return "\n".join(parts), [cli.__file__]


def help_of(*words):
    command = [sys.executable, "-m", "spcomm", *words, "--help"]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    if answer.returncode != 0:
        raise RuntimeError(f"{' '.join(command[2:])} says: {answer.stderr}")
    return answer.stdout.rstrip()


def codes(_):
    """All that `spcomm explain` knows."""
    paths = sorted(PAGES.glob("SP*.md"))
    return "\n\n".join(lowered(path.read_text()) for path in paths), paths


def lowered(text):
    """Headings one level down, but not what looks like one in a block."""
    out, fenced = [], False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        out.append(f"#{line}" if line.startswith("#") and not fenced else line)
    return "\n".join(out)


def with_neighbours(text):
    """A page of internals with a drawing of who includes the first module that it names as its source."""
    source = re.search(r"^\*Source: `csrc/(?:\w+/)?(spc_\w+)\.(?:\[ch\]|h)`", text, re.MULTILINE)
    if source is None or source.group(1) not in floors.modules():
        return text
    caption = f"Who includes {source.group(1)}, and what its files include, read from the sources."
    return f"{text}\n\n## Where it stands\n\n```{{drawing}} {caption}\n:source: {source.group(1)}\n```\n"


PIECES = {"header": header, "commands": commands, "codes": codes}


def expand(app, docname, source):
    """For Sphinx, which has just read the source of a page."""
    if docname.startswith("internals/"):
        source[0] = with_neighbours(source[0])

    def piece(match):
        text, paths = PIECES[match.group(1)](match.group(2).strip())
        for path in paths:
            app.env.note_dependency(str(path))
        return text

    source[0] = re.sub(rf"^```\{{({'|'.join(PIECES)})\}}(.*)\n```$", piece, source[0], flags=re.MULTILINE)
