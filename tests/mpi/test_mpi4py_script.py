# SPDX-License-Identifier: MIT
"""scripts/mpi4py-tests.py, with test files of its own in place of mpi4py's."""

import subprocess
import sys
import textwrap

import pytest

from checkout import ROOT

FILES = {
    "test_outcomes": """
        import unittest

        class Test(unittest.TestCase):
            def test_error(self):
                raise OSError("the reason")

            def test_failure(self):
                self.assertEqual(1, 2)

            def test_pass(self):
                pass

            def test_skip(self):
                self.skipTest("why")

            def test_subtests(self):
                for number in range(2):
                    with self.subTest(number):
                        self.assertEqual(number, 0)

        @unittest.skip("why")
        class Skipped(unittest.TestCase):
            def test(self):
                pass
    """,
    "test_waits": """
        import unittest
        from mpi4py import MPI

        class Test(unittest.TestCase):
            def test_a(self):
                pass

            def test_b(self):
                MPI.COMM_WORLD.recv(source=MPI.COMM_WORLD.rank)

            def test_c(self):
                pass
    """,
    "test_broken": "raise OSError",
}
RIGHT = """
# A comment.
test_outcomes.Test.test_error     always       it raises
test_outcomes.Test.test_failure   n=1,2        1 is not 2
test_outcomes.Test.test_subtests  one box      1 is not 0
test_waits.Test.test_[bc]         n=2          nobody sends
test_broken                       always       it has no tests
test_outcomes.Test.test_pass      n=3          concerns no run here
test_outcomes.Test.test_pass      boxes        concerns no run here
"""


@pytest.fixture
def script(mpi4py, tmp_path):
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))

    def run(exceptions, *files):
        listed = tmp_path / "exceptions.txt"
        listed.write_text(exceptions)
        words = ["-n", "2", "--tests", tmp_path, "--exceptions", listed, *files]
        command = [sys.executable, ROOT / "scripts" / "mpi4py-tests.py", *words]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=150)

    return run


def rows(result):
    """{file: [ran, failed, errors, skipped, did not end]}"""
    lines = [line.split() for line in result.stdout.splitlines()]
    return {line[0]: list(map(int, line[1:6])) for line in lines if len(line) == 7 and line[1].isdigit()}


def test_outcomes_that_are_listed(script):
    result = script(RIGHT, "all")
    assert result.returncode == 0, result.stdout + result.stderr
    assert rows(result) == {"outcomes": [4, 2, 1, 2, 0], "waits": [1, 0, 0, 0, 2], "broken": [0, 0, 0, 0, 1]}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("n=1,2  ", "n=3    ", "failed: test_outcomes.Test.test_failure"),
        ("one box", "boxes  ", "failed: test_outcomes.Test.test_subtests"),
        ("n=3 ", "n=2 ", "passed, although it is listed: test_outcomes.Test.test_pass"),
        ("test_error ", "test_other ", "error: test_outcomes.Test.test_error"),
        ("Test.test_error ", "Skipped.*       ", "skipped, although it is listed: test_outcomes.Skipped.*"),
        ("test_error ", "test_gone  ", "there is no such test: test_outcomes.Test.test_gone"),
    ],
)
def test_what_differs_from_the_list(script, old, new, complaint):
    assert RIGHT.count(old) == 1
    result = script(RIGHT.replace(old, new), "outcomes")
    assert result.returncode == 1, result.stdout + result.stderr
    assert complaint in result.stdout.splitlines()
