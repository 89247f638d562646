# SPDX-License-Identifier: MIT
"""Run the notebooks of examples/notebooks in a Jupyter kernel, and render them.

    python scripts/render-notebooks.py [--changed] [--to build/notebooks] [NAME.ipynb ...]

Of each one three things are made: NAME.ipynb with its outputs, NAME.md with the pictures in NAME_files/, for a site,
and NAME.html, which needs nothing else. A cell that raises an error fails, unless it has the tag "raises-exception";
such a cell fails if it raises none. NAME.sha256 names the notebook and the package that were run: with --changed, a
notebook that has run well with both runs no more. One runs at a time, because most of them measure.
"""

import argparse
import hashlib
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "examples" / "notebooks"
CELL_S = 120  # that no cell takes, on a busy machine


def main() -> int:
    parser = argparse.ArgumentParser(description="Run and render notebooks.")
    parser.add_argument("names", nargs="*", help="default: all in examples/notebooks")
    parser.add_argument("--to", default="build/notebooks", type=Path, metavar="FOLDER")
    parser.add_argument(
        "--changed", action="store_true", help="not those that ran as they are, with spcomm as it is"
    )
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    # Kernels and what they start have to find the interpreter that runs this.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    complaints = []
    for path in [SOURCES / name for name in given.names] or sorted(SOURCES.glob("*.ipynb")):
        stamp, made_of = given.to / f"{path.stem}.sha256", fingerprint(path)
        if given.changed and stamp.exists() and stamp.read_text() == made_of:
            continue
        stamp.unlink(missing_ok=True)
        begin = time.monotonic()
        wrong = run(path, given.to)
        complaints += wrong
        if not wrong:
            stamp.write_text(made_of)
        print(f"{path.name}: {time.monotonic() - begin:.1f} s", flush=True)
    print(*complaints, sep="\n", end="\n" if complaints else "", file=sys.stderr)
    return 1 if complaints else 0


def fingerprint(path: Path) -> str:
    """The hash of a notebook, of this script, of the package, and of the Python that runs them."""
    digest = hashlib.sha256(sys.version.encode())
    package = (
        one for one in (ROOT / "spcomm").rglob("*") if one.suffix in (".py", ".so", ".js", ".css", ".html")
    )
    for one in (path, Path(__file__), *sorted(package)):
        digest.update(f"{one.name} {one.stat().st_size}\n".encode())
        digest.update(one.read_bytes())
    return digest.hexdigest()


def run(path: Path, folder: Path) -> "list[str]":
    """Run one, write what has become of it, and say what is wrong with that."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    notebook = nbformat.read(path, as_version=4)
    complaints = []
    try:
        beside = {"metadata": {"path": str(path.parent)}}  # where it finds what it imports
        NotebookClient(notebook, timeout=CELL_S, kernel_name="python3", resources=beside).execute()
    except (CellExecutionError, CellTimeoutError) as error:
        complaints.append(f"{path.name}: {error}")
    complaints += [f"{path.name}: this cell raises no error:\n{cell.source}" for cell in too_good(notebook)]
    nbformat.write(notebook, folder / path.name)
    render(notebook, folder, path.stem)
    return complaints


def too_good(notebook: "object") -> list:
    """Cells that are meant to raise errors and raise none."""
    return [
        cell
        for cell in notebook.cells
        if "raises-exception" in cell.metadata.get("tags", ())
        and not any(output.output_type == "error" for output in cell.outputs)
    ]


def render(notebook: "object", folder: Path, name: str) -> None:
    """Write NAME.md with its pictures, and NAME.html."""
    from nbconvert import HTMLExporter, MarkdownExporter

    pictures = f"{name}_files"
    text, resources = MarkdownExporter().from_notebook_node(notebook, {"output_files_dir": pictures})
    (folder / f"{name}.md").write_text(text)
    for place, data in resources.get("outputs", {}).items():
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).write_bytes(data)
    page, _resources = HTMLExporter().from_notebook_node(notebook, {"metadata": {"name": name}})
    (folder / f"{name}.html").write_text(page)


if __name__ == "__main__":
    sys.exit(main())
