# SPDX-License-Identifier: MIT
"""Makes Gradescope's results.json of what `spcomm check --json` prints: python3 gradescope.py < grades.json."""

import json
import sys


def results(grades):
    """A test for each case; the cases of a file share one point."""
    tests = []
    for grade in grades:
        if grade["passed"] is None:  # it could not be graded
            tests.append({"name": grade["file"], "score": 0, "max_score": 1, "output": grade["message"]})
        for case in grade["cases"]:
            share = 1 / len(grade["cases"])
            tests.append(
                {
                    "name": f"{grade['exercise']}: {case['name']}",
                    "score": share if case["passed"] else 0,
                    "max_score": share,
                    "output": case["message"],
                }
            )
    return {"tests": tests}


grades = json.loads(sys.stdin.read() or "[]")
if any(grade["passed"] is not None for grade in grades):
    print(json.dumps(results(grades), indent=2))
else:  # the judge has failed, or there was no file
    print(json.dumps({"score": 0, "output": "This could not be graded; please tell your teacher."}))
