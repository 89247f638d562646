# SPDX-License-Identifier: MIT
# An autograded cell of nbgrader: an error of a cell is no points. exercise.py lies beside the notebook.
from spcomm.learn import grade

EXERCISE = "02"  # or a folder of your own, beside the notebook: "./05_name"
found = grade("exercise.py", EXERCISE)
assert found.passed, found.message
