# SPDX-License-Identifier: MIT
"""The table and the JSON."""

import json
import math

import pytest
from contenders import answering

from spcomm.bench import results_file
from spcomm.bench.measure import Results
from spcomm.bench.report import Report
from spcomm.bench.results_file import ResultsFileError, load
from spcomm.bench.rows import MEBIBYTES, MILLISECONDS, Goal, Row

SPCOMM, FAST, SLOW = answering("spcomm", 1.0, "spcomm"), answering("fast", 1.0), answering("slow", 1.0)


def report(rows, times, failures=None, contenders=(SPCOMM, FAST, SLOW), targets=True):
    return Report(rows, contenders, Results(times, failures or {}, rounds=2), targets=targets)


def cells(text, number):
    return [cell.strip() for cell in text.splitlines()[number].split("  ") if cell.strip()]


def test_a_row_is_compared_with_its_best_peer():
    row = Row("a", "work a", "barrier", 2, goal=Goal(0.5))
    result = report(
        [row], {"a": {"spcomm": [[1e-6], [2e-6]], "fast": [[4e-6], [5e-6]], "slow": [[9e-6], [9e-6]]}}
    )
    assert cells(result.text(), 0) == ["work", "Spcomm", "Fast", "Slow", "ratio", "to reach"]
    assert cells(result.text(), 2) == [
        "work a, µs",
        "~1.50 (1.00–2.00)",
        "~4.50 (4.00–5.00)",
        "9.00 (9.00–9.00)",
        "0.33",
        "≤ 0.5",
        "reached",
    ]


def test_the_projects_goals_are_shown_on_request():
    row = Row("a", "work a", "barrier", 2, goal=Goal(0.5))
    shown = report([row], {"a": {"spcomm": [[1e-6]], "fast": [[4e-6]]}}, targets=False).text()
    assert cells(shown, 0) == ["work", "Spcomm", "Fast", "Slow", "ratio"]
    assert cells(shown, 2) == ["work a, µs", "1.00 (1.00–1.00)", "4.00 (4.00–4.00)", "0.25"]
    assert "reach" not in shown


def test_a_sweep_has_a_table_of_its_own():
    point = Row("p", "one way, 1 MB", "one_way", 2, size_bytes=1_000_000, is_sweep=True)
    row = Row("a", "work a", "barrier", 2)
    times = {"p": {"spcomm": [[1e-3, 2e-3], [1e-3]], "fast": [[4e-3], [4e-3]]}, "a": {"spcomm": [[1.0]]}}
    shown = report([point, row], times).text()
    assert cells(shown, 0)[0] == "work" and cells(shown, 2)[0] == "work a, µs"
    assert cells(shown, 3) == ["work", "minimum", "median", "spread", "MB/s"]
    assert cells(shown, 5) == ["one way, 1 MB", "Spcomm", "1000 µs", "1250 µs", "50 %", "800", "not good"]
    assert cells(shown, 6) == ["one way, 1 MB", "Fast", "4000 µs", "4000 µs", "0 %", "250", "good"]
    assert '1 of 2 numbers is good. ~ and "not good": the largest round exceeds the smallest by' in shown


def test_good_numbers_need_no_remark():
    row = Row("a", "work a", "barrier", 2)
    assert "good" not in report([row], {"a": {"spcomm": [[1.0], [1.04]]}}).text()
    assert "~: the largest round" in report([row], {"a": {"spcomm": [[1.0], [1.06]]}}).text()


def test_where_a_number_comes_from():
    rows = [
        Row("loop", "loop", "plain_c", 2, program="loop", peers=False),
        Row("pool", "pool", "cluster", 2, {"whose": "pool", "what": "call"}, peers=False),
    ]
    found = report(rows, {row.key: {"spcomm": [[1.0]]} for row in rows}).json()["measurements"]
    assert [one["contender"] for one in found] == ["c", "pool"]


def test_a_goal_missed():
    row = Row("a", "work a", "barrier", 2, goal=Goal(0.5))
    assert cells(report([row], {"a": {"spcomm": [[3.0]], "fast": [[4.0]]}}).text(), 2)[-1] == "missed"


def test_a_goal_in_seconds_counts_too():
    row = Row("a", "work a", "barrier", 2, goal=Goal(1.0, seconds=150e-6))
    times = {"a": {"spcomm": [[160e-6]], "fast": [[900e-6]]}}
    assert report([row], times).reached(row) is False
    assert "≤ 1, 150 µs" in report([row], times).text()


def test_a_row_compared_with_another_of_spcomm():
    rows = [
        Row("at-8", "at 8", "launch", 8, unit=MILLISECONDS),
        Row("at-64", "at 64", "launch", 64, goal=Goal(2.0, against="at-8"), peers=False, unit=MILLISECONDS),
    ]
    result = report(rows, {"at-8": {"spcomm": [[0.1]], "fast": [[9.0]]}, "at-64": {"spcomm": [[0.19]]}})
    assert cells(result.text(), 3) == ["at 64, ms", "190 (190–190)", "1.90", "≤ 2", "reached"]
    assert result.json()["rows"][1]["against"] == "at-8"


@pytest.mark.parametrize(
    ("spreads", "sentence"),
    [
        ([9.0], "The number is not good."),
        ([9.0, 9.0], "None of 2 numbers is good."),
        ([9.0, 0.0], "1 of 2 numbers is good."),
        ([9.0, 0.0, 0.0], "2 of 3 numbers are good."),
    ],
)
def test_how_many_numbers_are_good(spreads, sentence):
    rows = [Row(str(k), "work", "barrier", 2) for k in range(len(spreads))]
    times = {row.key: {"spcomm": [[1.0], [1.0 + spread]]} for row, spread in zip(rows, spreads, strict=True)}
    assert f"\n{sentence} ~: the largest round" in report(rows, times, contenders=(SPCOMM,)).text()


def test_nothing_to_compare_with():
    row = Row("a", "work a", "barrier", 2, goal=Goal(0.5))
    result = report([row], {"a": {"spcomm": [[1e-6]]}}, contenders=(SPCOMM,))
    assert result.reached(row) is None
    assert cells(result.text(), 2) == ["work a, µs", "1.00 (1.00–1.00)", "≤ 0.5"]


def test_failures_and_what_is_missing_are_told():
    row = Row("a", "work a", "barrier", 2)
    absent = type(FAST)("peer", "A Peer", "mpi4py", missing="not installed: mpi4py; install it")
    result = report([row], {}, {("a", "spcomm"): "exit code 1: why"}, (SPCOMM, absent))
    assert cells(result.text(), 2) == ["work a, µs", "failed"]
    assert "A Peer: not installed: mpi4py; install it" in result.text()
    assert "failed: work a, Spcomm: exit code 1: why" in result.text()


def test_json_has_everything():
    row = Row("a", "work a", "barrier", 2, goal=Goal(0.5))
    times = {"a": {"spcomm": [[1.0, 3.0], [2.0]], "fast": [[8.0], [4.0]]}}
    whole = json.loads(json.dumps(report([row], times).json()))
    entry = whole["rows"][0]
    assert entry["ratio"] == 2 / 6 and entry["ratio_range"] == [0.25, 0.5] and entry["reached"] is True
    assert entry["against"] == "fast" and entry["to_reach"]["ratio"] == 0.5
    assert {"date", "machine", "versions", "rounds", "failures"} <= set(whole)
    ours, theirs = whole["measurements"]
    assert (ours["contender"], theirs["contender"]) == ("spcomm", "fast")
    assert ours["samples"] == [[1.0, 3.0], [2.0]] and ours["minimum"] == 1.0 and ours["median"] == 2.0
    assert ours["spread"] == 0.0 and ours["good"] is True
    assert theirs["spread"] == 1.0 and theirs["good"] is False


def test_json_says_what_was_measured():
    rows = [
        Row("a", "a", "barrier", 4, boxes=4, operation="meet", size_bytes=8, buffers="cold", direct=True),
        Row("b", "b", "memory", 4, boxes=2, unit=MEBIBYTES, computing=1, encrypted=True),
        Row("c", "c", "barrier", 4),
    ]
    a, b, c = report(rows, {row.key: {"spcomm": [[1.0]]} for row in rows}).json()["measurements"]
    assert (a["operation"], a["transport"], a["route"], a["bytes"]) == ("meet", "tcp", "direct", 8)
    assert a["buffers"] == "cold" and (a["spread"], a["good"]) == (None, None)
    assert (b["operation"], b["transport"], b["route"], b["bytes"]) == ("memory", "mixed", "server", None)
    assert (b["unit"], b["computing"], b["encrypted"], b["buffers"]) == ("B", 1, True, None)
    assert (c["transport"], c["route"], c["unit"]) == ("memory", None, "s")


def test_the_json_can_be_read_again(tmp_path):
    rows = [Row("a", "a", "barrier", 4, size_bytes=8), Row("b", "b", "barrier", 4)]
    times = {"a": {"spcomm": [[1.0, 2.0], [3.0]], "slow": [[4.0]]}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(report(rows, times).json()))
    found = load(path)
    assert [(one.key, one.contender, one.samples) for one in found.measurements] == [
        ("a", "spcomm", ((1.0, 2.0), (3.0,))),
        ("a", "slow", ((4.0,),)),
    ]
    assert found.measurements[0].bytes == 8 and found.machine["cores"] >= 1 and "T" in found.date


def test_a_file_without_an_end_is_not_read_to_it(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("[1,2,3,4,5]")
    monkeypatch.setattr(results_file, "_MOST_CHARACTERS", 11)
    assert results_file.read_json(path) == [1, 2, 3, 4, 5]
    monkeypatch.setattr(results_file, "_MOST_CHARACTERS", 10)
    with pytest.raises(ResultsFileError, match="is not JSON: it has more than 0 MiB"):
        load(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "cannot read '{}': No such file or directory"),
        ("[1", "'{}' is not JSON: "),
        pytest.param("[" * 100_000, "'{}' is not JSON: ", id="deep"),
        ("[]", "'{}' was not written by spcomm bench --json"),
        ('{"format": 2}', "'{}' was not written by spcomm bench --json"),
        ('{"format": 1, "machine": {}}', "'{}' has format 1, and this spcomm reads format 2: measure again"),
        ('{"format": 2, "machine": {}}', "'{}' is damaged: no 'measurements'"),
        ('{"format": 2, "machine": {}, "measurements": [{}]}', "'{}' is damaged: no 'key'"),
        ('{"format": 2, "machine": {}, "measurements": 3}', "'{}' is damaged: 'int' object is not iterable"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path, text, complaint):
    path = tmp_path / "a.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ResultsFileError) as raised:
        load(path)
    assert str(raised.value).startswith(complaint.format(path)) and "\n" not in str(raised.value)


WHOLE = {"cores": 2, "system": "Linux", "python": "3"}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        *(({"machine": machine}, "") for machine in (None, [], {}, {"cores": "two"}, {"cores": 0})),
        ({"machine": {"cores": math.inf}}, "cores is inf"),
        ({"machine": {"cores": 2, "system": "Linux"}}, "no 'python'"),
        ({"machine": {**WHOLE, "system": ""}}, "system is ''"),
        ({"machine": {**WHOLE, "busy_with_others": math.nan}}, "busy_with_others is nan"),
        ({"date": 2026}, "date is 2026"),
        ({"versions": []}, "versions is []"),
        ({"chosen": 1}, "chosen is 1"),
        ({"planned_rounds": -1}, "planned_rounds is -1"),
        ({"thinned": [["a", "spcomm", 1.5]]}, "rounds is 1.5"),
        ({"failures": [["a", "spcomm"]]}, "not enough values"),
        # Fields of its measurement.
        ({"samples": [[]]}, "'a' of 'spcomm' has no samples"),
        *(
            ({"samples": [samples]}, "'a' of 'spcomm' has a sample that is no time or size")
            for samples in ([math.nan], [1.0, -1.0], [1e308], [0.0])
        ),
        ({"nodes": True}, "nodes is True"),
        ({"contender": "spcomm\x1b[2J"}, "contender is 'spcomm\\x1b[2J'"),
        ({"nodes": [4]}, "nodes is [4]"),
        ({"bytes": 10**400}, "bytes is 1000"),
        ({"transport": None}, "transport is None"),
    ],
)
def test_a_file_with_a_field_of_another_kind_is_refused(tmp_path, change, complaint):
    whole = report([Row("a", "a", "barrier", 4)], {"a": {"spcomm": [[1.0]]}}).json()
    [measurement] = whole["measurements"]
    (measurement if set(change) <= set(measurement) else whole).update(change)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(whole))
    with pytest.raises(ResultsFileError, match="is damaged: ") as raised:
        load(path)
    assert complaint in str(raised.value)


def test_a_disturbed_measurement_says_so():
    result = report([Row("a", "work a", "barrier", 2)], {})
    assert "Disturbed" not in result.text()
    result.results.others = 0.04
    assert "Disturbed" not in result.text()
    result.results.others = 1.26
    assert "other programs kept 1.3 cores busy" in result.text()
    assert result.json()["machine"]["busy_with_others"] == 1.26
