# SPDX-License-Identifier: MIT
"""Markdown made from other sources than pages: C headers, the command's own help, `spcomm explain`, notebooks.

The block below a mark such as <!-- header: spcomm/spcomm.h --> (spcomm/docs/pages.py) is replaced before the page is
parsed, so that headings in it are headings of the page. A comment that begins with `toctree`, or `toctree: CAPTION`,
has the pages of a hidden table of contents.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import drawing
import floors
import headers

from spcomm.docs import pages

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "spcomm" / "diagnose" / "pages"
NOTEBOOKS = ROOT / "examples" / "notebooks"
RUN = ROOT / "build" / "notebooks"  # where they are with their outputs
RENDER = ROOT / "scripts" / "render-notebooks.py"
WITH_OUTPUTS = "Its outputs are from a run on the machine that built this site."
WITHOUT_OUTPUTS = "This build of the site did not run it, so its cells have no outputs here."


def header(name, _block, _config):
    """The header that programs include: spcomm/spcomm.h."""
    return headers.markdown(name), [headers.INCLUDE / name]


def commands(_argument, _table, _config):
    """The output of spcomm and each of its commands with --help; new commands are found."""
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


def codes(_argument, _table, _config):
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
    caption = f"The files that include {source.group(1)}, and those that it includes, read from the sources."
    picture = drawing.svg(drawing.parse(floors.text(source.group(1))))
    figure = f'<figure class="drawing">{picture}<figcaption>{caption}</figcaption></figure>'
    return f"{text}\n\n## Where it stands\n\n{figure}\n"


def run_notebooks(app):
    """For Sphinx, before it reads pages: runs each notebook that has changed, or that spcomm has changed for."""
    if not app.config.spcomm_run_notebooks:
        return
    command = [sys.executable, str(RENDER), "--changed", "--to", str(RUN)]
    answer = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if answer.returncode != 0:
        said = re.sub(r"\x1b\[[\d;]*m", "", answer.stderr).strip()
        name = re.search(r"^(\w+\.ipynb): ", said, re.MULTILINE)
        sys.exit(  # Sphinx wraps its own errors into a request for a bug report
            f"{name[1] if name else 'A notebook'} did not run, so its page has no outputs: {said.splitlines()[-1]} "
            "(`make notebooks` says more; `-D spcomm_run_notebooks=0` makes pages without outputs)"
        )


def notebook(name, _block, config):
    """A notebook with its outputs and pictures, unless this build runs none; the page has its title."""
    source, run = NOTEBOOKS / f"{name}.ipynb", RUN / f"{name}.md"
    if config.spcomm_run_notebooks:
        said, text = WITH_OUTPUTS, run.read_text()
        text = re.sub(rf"\]\(({name}_files/[^)]+)\)", r"](../../build/notebooks/\1)", text)
    else:
        said, text = WITHOUT_OUTPUTS, without_outputs(json.loads(source.read_text()))
    return said + "\n" + text.lstrip().partition("\n")[2], [source]


def without_outputs(found):
    """The text and the questions of a notebook that was not run."""
    cells = ["".join(cell["source"]) for cell in found["cells"]]
    kinds = [cell["cell_type"] for cell in found["cells"]]
    told = [
        text if kind == "markdown" else f"```python\n{text}\n```"
        for text, kind in zip(cells, kinds, strict=True)
    ]
    return "\n\n".join(told)


def list_for_programs(app, exception):
    """For Sphinx, when all pages are there: llms.txt, whose links lead to the copies of the sources."""
    if exception is None and app.builder.format == "html":
        text = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
        Path(app.outdir, "llms.txt").write_text(text.replace("](", "](_sources/"), encoding="utf-8")


def api(_argument, table, _config):
    """The docstrings of the names in a table: spcomm_docs.py has the directive."""
    return "\n".join(["```{api}", *pages.names_in(table), "```"]), []


def module(name, _table, _config):
    """The docstrings of a module's names."""
    return f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n```", []


def include(path, _link, _config):
    """Another file, without its title."""
    return f"```{{include}} {path}\n:start-line: 1\n```", []


PIECES = {
    "api": api,
    "module": module,
    "header": header,
    "commands": commands,
    "codes": codes,
    "options": lambda _argument, table, _config: (table, []),
    "notebook": notebook,
    "include": include,
}
TOCTREE = re.compile(r"^<!-- toctree(?:: ([^\n]+))?\n(.*?)^-->$", re.MULTILINE | re.DOTALL)


def toctree(match):
    """A table of contents that the site shows beside its pages."""
    caption = f":caption: {match[1]}\n" if match[1] else ""
    return f"```{{toctree}}\n:hidden:\n:glob:\n{caption}\n{match[2]}```"


def expand(app, docname, source):
    """For Sphinx, which has just read the source of a page."""
    if docname.startswith("internals/"):
        source[0] = with_neighbours(source[0])

    def piece(match):
        text, paths = PIECES[match[1]](match[2], match[3], app.config)
        for path in paths:
            app.env.note_dependency(str(path))
        return text + "\n"

    source[0] = TOCTREE.sub(toctree, pages.MARK.sub(piece, source[0]))
