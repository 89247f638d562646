# SPDX-License-Identifier: MIT
"""examples/time_buckets.py: the same on any number of nodes, also when much is done on trial and undone."""

import re

import pytest

from nodepool import SIZES
from programs import ok, run
from test_examples import EXAMPLES

PROGRAM = EXAMPLES / "time_buckets.py"
# Timing no longer decides how much is done on trial: always as much as may be.
ALWAYS = ("while not others.done() and self.handle_on_trial():", "while self.handle_on_trial():")


def changed(folder, *changes):
    """The program with other lines in it."""
    text = PROGRAM.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "changed.py"
    path.write_text(text)
    return path


def digest(result):
    return re.search(r"^\d+ jobs .*\ndigest of all stations: \w+$", result.out, re.MULTILINE).group()


@pytest.mark.slow
def test_the_same_on_any_number_of_nodes(tmp_path):
    results = [ok(run(tmp_path, nodes, "", program=PROGRAM)) for nodes in SIZES]
    assert all(result.out.endswith("checked: one node finds the same\n") for result in results)
    assert len({digest(result) for result in results}) == 1


@pytest.mark.parametrize("nodes", [1, 3, 8])
def test_what_was_done_on_trial_is_undone(tmp_path, nodes):
    result = ok(run(tmp_path, nodes, "", program=changed(tmp_path, ALWAYS)))
    assert int(re.search(r"(\d+) events undone", result.out).group(1)) > 0


@pytest.mark.parametrize(
    "change",
    [
        ("self.stations[number] = step.before", "pass"),  # nothing is put back
        ("horizon = self.comm.global_min(local)", "horizon = self.comm.global_max(local)"),  # sent too early
        ("steps[-1].time > time", "float(steps[-1].time) > float(time)"),  # the priorities do not count
    ],
)
def test_the_check_sees_mistakes(tmp_path, change):
    result = run(tmp_path, 3, "", program=changed(tmp_path, ALWAYS, change))
    assert result.code == 1
    assert "wrong: one node has the digest" in result.err


def test_more_nodes_than_stations_and_nothing_to_do(tmp_path):
    few = changed(tmp_path, ("STATIONS, JOBS = 60, 240", "STATIONS, JOBS = 2, 5"))
    assert "checked: " in ok(run(tmp_path, 4, "", program=few)).out
    assert "0 arrivals" in ok(run(tmp_path, 2, "", program=PROGRAM, arguments=["0"])).out
