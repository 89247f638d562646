# SPDX-License-Identifier: MIT
"""Programs in a text file: entries.py."""

import pytest

import entries

TEXT = """\
import spcomm

comm = spcomm.startup()

=== first

== one: A sentence: with a colon.
run: -n 2
says: this
says: that
comm.barrier()

== two: It has two files.
runs: what is no word of a head begins the program
import os
-- helpers/other.py

x = 1
-- last.py
=== second

== one: A name may occur in each group.
x = 2
"""


def test_entries(tmp_path):
    path = tmp_path / "wrong.txt"
    path.write_text(TEXT)
    one, two, other = entries.read(path, "run says")
    assert [(entry.group, entry.name) for entry in (one, two, other)] == [
        ("first", "one"),
        ("first", "two"),
        ("second", "one"),
    ]
    assert (one.get("run"), one.all("says"), two.get("says")) == ("-n 2", ["this", "that"], "")
    assert one.files == {"one.py": "import spcomm\n\ncomm = spcomm.startup()\ncomm.barrier()\n"}
    assert two.write(tmp_path / "to") == tmp_path / "to" / "two.py"
    assert (tmp_path / "to" / "two.py").read_text() == two.program.partition("--")[0]
    assert (tmp_path / "to" / "helpers" / "other.py").read_text() == "\nx = 1\n"
    assert (tmp_path / "to" / "last.py").read_text() == ""
    with pytest.raises(SyntaxError):
        two.compile()
    other.compile()


@pytest.mark.parametrize(
    ("text", "complaint"), [("== a\nx\n", "what is it"), ("== a: b\n\n== a: c\n", "two entries")]
)
def test_what_is_refused(tmp_path, text, complaint):
    (tmp_path / "c.txt").write_text(text)
    with pytest.raises(AssertionError, match=complaint):
        entries.read(tmp_path / "c.txt", "run")
