# SPDX-License-Identifier: MIT
"""The same wrong programs in several boxes: the same report, to the letter, and the same exit code."""

import re

import pytest

import cases
from pairwise import each

PLACINGS = {"two": "0,0,0,0,1,1,1,1", "three": "0,1,2,0,1,2,0,1", "mixed": "0,0,1,0,1,1,0,0"}
PROGRAMS = [
    case
    for case in cases.found("SP101")
    if "--group" not in case.run and " : " not in case.run and "-n 1" not in case.run
]
DEADLOCK = 99


def placed(case, name):
    """`--map` for as many nodes as the case has."""
    nodes = int(re.search(r"-n (\d+)", case.run)[1])
    boxes = PLACINGS[name].split(",")[:nodes] if nodes > 2 else ["0", "1"]
    return ["--map", ",".join(boxes)] if len(set(boxes)) > 1 else ["--boxes", "2"]


@pytest.mark.spread("placing")
@pytest.mark.parametrize("placing", PLACINGS)
@pytest.mark.parametrize("case", each(12, PROGRAMS), ids=lambda case: case.name)
def test_is_told_over_boxes(launch, written, case, placing):
    result = launch(*placed(case, placing), *case.command(written(case)))
    assert result.code == DEADLOCK, result
    assert cases.differences(case, result.err) == "", result
    assert not launch.alive()
