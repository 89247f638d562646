# SPDX-License-Identifier: MIT
"""The listings of docs/howto/notebook.md do what the page says, in its order: cells in a kernel, programs by Python."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernel import Kernel

pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install ipykernel")

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "notebook.md"
LISTING = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def listings():
    return [(code, (shown or "").splitlines()) for code, shown in LISTING.findall(PAGE.read_text())]


def is_cell(code):
    return "spcomm" in code and "%" in code.partition("spcomm")[0]


def test_there_are_cells_and_programs():
    assert {is_cell(code) for code, _shown in listings()} == {True, False}


@pytest.mark.leaves("the client of the kernel keeps sockets and threads until it is collected")
def test_cells():
    kernel = Kernel()
    try:
        for code, shown in listings():
            if not is_cell(code):
                continue
            cell = kernel.run(code)
            said = "\n".join([cell.out, cell.err, cell.error, cell.result or ""])
            lines = [line for line in said.splitlines() if line]
            kept = [line for line in shown if line != "…"]
            assert [line for line in kept if line not in lines] == [], (code, said)
            if shown and "…" not in shown:  # nothing is left out without a mark; nodes take turns at random
                assert sorted(lines) == sorted(kept), (code, said)
            assert shown or not cell.error, (code, cell)
    finally:
        kernel.close()


@pytest.mark.slow
@pytest.mark.parametrize(("code", "shown"), [listing for listing in listings() if not is_cell(listing[0])])
def test_programs(tmp_path, code, shown):
    path = tmp_path / "program.py"
    path.write_text(code)
    found = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=100)
    assert (found.stdout.splitlines(), found.stderr, found.returncode) == (shown, "", 0)
