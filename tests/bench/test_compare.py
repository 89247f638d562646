# SPDX-License-Identifier: MIT
"""Verdicts on changes: known answers, noise, and what is said beside them."""

import json
import random

import pytest
from contenders import answering

from spcomm.bench import command, compare
from spcomm.bench.measure import Results
from spcomm.bench.report import Report
from spcomm.bench.results_file import load
from spcomm.bench.rows import Row
from spcomm.bench.statistics import bootstrap, change, summarise


def rounds(median, noise, count=7, seed=1):
    generator = random.Random(seed)
    return summarise([[median * (1 + generator.gauss(0, noise))] for _ in range(count)])


def test_the_interval_of_constants_is_their_ratio():
    assert bootstrap((2.0,) * 5, (3.0,) * 5) == (1.5, 1.5)


def test_the_interval_holds_the_ratio_and_lies_within_the_extremes():
    old, new = (1.0, 1.1, 1.2, 1.3, 1.4), (2.0, 2.1, 2.2, 2.3, 2.4)
    low, high = bootstrap(old, new)
    assert 2.0 / 1.4 <= low < 2.2 / 1.2 < high <= 2.4 / 1.0
    assert bootstrap(old, new) == (low, high)


def test_a_quiet_change_is_seen():
    assert change(rounds(1.0, 0.01), rounds(1.2, 0.01, seed=2)).verdict == "slower"
    assert change(rounds(1.0, 0.01), rounds(0.8, 0.01, seed=2)).verdict == "faster"
    assert change(rounds(1.0, 0.01), rounds(1.0, 0.01, seed=2)).verdict == "same"


def test_a_small_change_is_no_news():
    found = change(rounds(1.0, 0.001), rounds(1.04, 0.001, seed=2))
    assert found.interval[0] > 1.0 and found.verdict == "same"


def test_noise_is_called_noise():
    assert change(rounds(1.0, 0.4), rounds(1.2, 0.4, seed=2)).verdict == "too noisy to tell"


@pytest.mark.parametrize(
    ("old", "new", "poor"),
    [
        ((2.0, 2.0), (1.0, 1.2), "20 % now"),
        ((2.0, 2.12), (1.0, 1.0), "6 % before"),
        ((2.0, 2.5), (1.0, 1.2), "25 % before, 20 % now"),
    ],
)
def test_a_change_of_numbers_that_are_not_good_is_only_apparent(old, new, poor):
    sides = [summarise([[value] for value in side * 4]) for side in (old, new)]
    assert change(*sides).verdict == f"not good: spread {poor}; seems faster"
    assert change(sides[1], sides[0]).verdict.endswith("; seems slower")


def test_a_side_of_exactly_the_limit_is_good():
    assert change(summarise([[100.0], [105.0]] * 4), summarise([[300.0]] * 4)).verdict == "slower"


def test_three_rounds_tell_nothing():
    found = change(rounds(1.0, 0.0, count=3), rounds(2.0, 0.0))
    assert found.interval is None and found.verdict == "too few rounds to tell: at least 4 of each"
    assert found.ratio == 2.0


@pytest.mark.parametrize("count", [4, 7])
def test_the_same_program_is_seldom_called_another(count):
    """Two measurements of one distribution: verdicts of a change stay rare, however wide it is."""
    wrong = 0
    for seed in range(60):
        found = change(rounds(1.0, 0.1, count, seed=seed), rounds(1.0, 0.1, count, seed=1000 + seed))
        wrong += found.verdict.endswith(("slower", "faster"))
    assert wrong <= 6


ROWS = [Row("a", "work a", "barrier", 2), Row("b", "work b", "barrier", 4)]


def written(times, **changes):
    results = Results({key: {"spcomm": samples} for key, samples in times.items()}, others=0.0)
    chosen = {"names": ["barrier"], "nodes": (2, 4), "sizes": (), "repetitions": None}
    found = json.loads(json.dumps(Report(ROWS, [answering("spcomm", 1.0, "spcomm")], results, chosen).json()))
    found["machine"] |= changes
    return found


def saved(tmp_path, *arguments, **changes):
    path = tmp_path / "old.json"
    path.write_text(json.dumps(written(*arguments, **changes)))
    return load(path)


TITLES = {row.key: row.title for row in ROWS}


def test_the_table(tmp_path):
    old = saved(tmp_path, {"a": [[1e-6]] * 5})
    shown = compare.text(old, written({"a": [[2e-6]] * 5, "b": [[1e-6]] * 5}), TITLES)
    assert "work a  spcomm  1.00 µs  2.00 µs  2.00 (2.00–2.00)  slower" in shown
    assert "1 measurement of this run is not in it." in shown
    assert "Another machine" not in shown and "Disturbed" not in shown


def test_nothing_in_common(tmp_path):
    old = saved(tmp_path, {"b": [[1e-6]] * 5})
    shown = compare.text(old, written({"a": [[2e-6]] * 5}), TITLES)
    assert shown.strip() == f"{old.path} has none of these measurements: nothing to compare."


def test_reasons_to_doubt(tmp_path):
    old = saved(tmp_path, {"a": [[1e-6]] * 5}, cores=64, busy_with_others=1.5)
    shown = compare.text(old, written({"a": [[1e-6]] * 5}, cores=2), TITLES)
    assert "Another machine or Python, so the difference may be its own: cores was 64, is 2." in shown
    assert "Disturbed then: others kept 1.5 cores busy." in shown and "Disturbed now" not in shown


def test_the_choice_of_the_old_file_is_repeated(tmp_path):
    old = saved(tmp_path, {"a": [[1e-6]] * 5})
    assert command.choice_of(old) == {
        "names": ["barrier"],
        "nodes": (2, 4),
        "operations": (),
        "sizes": (),
        "transports": (),
        "buffers": (),
        "repetitions": None,
    }


@pytest.mark.parametrize(
    ("chosen", "complaint"),
    [
        ({"names": ["barier"]}, "no benchmark 'barier'; there are: "),
        ({"names": ["--json=stolen.json"]}, "no benchmark '--json=stolen.json'"),
        ({"names": None, "nodes": [0]}, "--nodes: '0' is not a list of node counts"),
        ({"names": ["sweep"], "sizes": {"8": 1}}, "--sizes: "),
        ({"repetitions": 1e308}, "--repetitions: '1e+308' is not a number of repetitions"),
    ],
)
def test_a_choice_that_cannot_be_repeated_is_one_sentence(tmp_path, monkeypatch, capsys, chosen, complaint):
    monkeypatch.chdir(tmp_path)
    whole = written({"a": [[1e-6]] * 5}) | {"chosen": chosen}
    (tmp_path / "old.json").write_text(json.dumps(whole))
    with pytest.raises(SystemExit) as ended:
        command.main(["--compare", "old.json"])
    shown = capsys.readouterr().err
    assert ended.value.code == 125 and shown.count("\n") == 1
    assert shown.startswith("spcomm bench --compare old.json: ") and complaint in shown
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]
