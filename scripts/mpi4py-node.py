# SPDX-License-Identifier: MIT
"""One node of scripts/mpi4py-tests.py: mpi4py-node.py FOLDER MODULE runs the tests of a module, and logs each of them.

The log FOLDER/RANK.jsonl has a list of all tests first, then for each test a line when it begins and one when it ends.
It is complete up to the test during which a node was lost.
"""

import json
import sys
import unittest
from pathlib import Path

from mpi4py import MPI


class Log(unittest.TestResult):
    """Writes each outcome as soon as it is there."""

    def __init__(self, path):
        super().__init__()
        self.file = path.open("w")

    def write(self, *words):
        print(json.dumps(words), file=self.file, flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.write(test.id(), "begun", "")

    def addSuccess(self, test):
        self.write(test.id(), "passed", "")

    def addSkip(self, test, reason):
        self.write(test.id(), "skipped", reason)

    def addFailure(self, test, error):
        self.write(test.id(), "failed", self._exc_info_to_string(error, test))

    def addError(self, test, error):
        self.write(test.id(), "error", self._exc_info_to_string(error, test))

    def addExpectedFailure(self, test, error):
        self.write(test.id(), "passed", "")

    def addUnexpectedSuccess(self, test):
        self.write(test.id(), "failed", "was expected to fail")

    def addSubTest(self, test, subtest, error):
        if error is not None:
            is_failure = issubclass(error[0], test.failureException)
            (self.addFailure if is_failure else self.addError)(test, error)


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def main(folder, module):
    sys.path.insert(0, ".")
    log = Log(Path(folder, f"{MPI.COMM_WORLD.Get_rank()}.jsonl"))
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    log.write("", "all", [test.id() for test in tests_of(suite)])
    suite.run(log)
    log.write("", "end", "")


main(*sys.argv[1:])
