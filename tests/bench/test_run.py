# SPDX-License-Identifier: MIT
"""The real programs on real nodes, for as short a time as there is."""

import pytest

from spcomm.bench import peers
from spcomm.bench.measure import one_start
from spcomm.bench.rows import Row

WORKS = [
    Row("array", "", "array_pingpong", 2),
    Row("dict", "", "object_pingpong", 2),
    Row("written", "", "written_pingpong", 2, {"size": 1 << 20}),
    Row("ring", "", "ring", 2),
    Row("barrier", "", "barrier", 2),
    Row("sum", "", "float_sum", 2),
]


def contenders():
    return [peers.spcomm(), *(make() for make in peers.PEERS.values())]


@pytest.mark.parametrize("contender", contenders(), ids=lambda contender: contender.name)
def test_every_work(contender):
    if contender.missing:
        pytest.skip(contender.missing)
    results = one_start(WORKS, contender, 0.001)
    assert sorted(results) == sorted(row.key for row in WORKS)
    assert all(times and all(time > 0 for time in times) for times in results.values())


@pytest.mark.parametrize("contender", contenders(), ids=lambda contender: contender.name)
def test_launch(contender):
    if contender.missing:
        pytest.skip(contender.missing)
    assert one_start([Row("launch", "", "launch", 3)], contender, 0.001)["launch"][0] > 0
