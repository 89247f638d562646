# SPDX-License-Identifier: MIT
"""Makes Gradescope's results.json of what `spcomm check --json` prints: python3 gradescope.py < grades.json."""

import json
import sys


def results(grades):
    """A test for each case; the cases of a file share one point."""
    tests = []
    for grade in grades:
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


text = sys.stdin.read()
if text.strip():
    print(json.dumps(results(json.loads(text)), indent=2))
else:  # the judge has failed, or there was no file
    print(json.dumps({"score": 0, "output": "This could not be graded; please tell your teacher."}))
