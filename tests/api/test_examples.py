# SPDX-License-Identifier: MIT
"""Every example runs, alone and on four nodes, and checks itself."""

import sys
from pathlib import Path

import pytest

from programs import finish, ok, run, start

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.name for path in EXAMPLES.glob("[0-9]*.py"))


def test_there_are_examples():
    assert NAMES


@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("name", NAMES)
def test_runs(tmp_path, name, nodes):
    result = ok(run(tmp_path, nodes, "", program=EXAMPLES / name))
    assert result.out.strip() or list(tmp_path.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_runs_without_a_launcher(tmp_path, name):
    ok(finish(start([sys.executable, EXAMPLES / name], cwd=tmp_path)))


def test_the_page_on_byte_order_shows_what_the_example_prints(tmp_path):
    text = (EXAMPLES.parent / "docs" / "howto" / "net_types.md").read_text()
    shown = text.partition("examples/10_byte_order.py\n")[2].partition("```")[0]
    result = ok(run(tmp_path, 2, "", program=EXAMPLES / "10_byte_order.py"))
    assert [line.rstrip() for line in result.out.splitlines()] == shown.splitlines()
