# SPDX-License-Identifier: MIT
# An autograded cell of nbgrader: an error of a cell is no points. exercise.py lies beside the notebook.
import os

from spcomm.learn import grade

found = grade("exercise.py", os.environ.get("EXERCISE", "02"))
assert found.passed, found.message
