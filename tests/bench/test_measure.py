# SPDX-License-Identifier: MIT
"""The rounds: who runs when, what is kept, and what happens to a contender that fails."""

import math
import subprocess
import sys
from dataclasses import replace

import pytest
from contenders import ANSWER, answering, with_code

from spcomm.bench import measure as module
from spcomm.bench import peers
from spcomm.bench.measure import Plan, computing, estimate, grouped, measure, one_start, run, turned
from spcomm.bench.report import Report
from spcomm.bench.rows import Row

ROW = Row("a", "work a", "barrier", 2)
OTHER = Row("b", "work b", "ring", 2, {"size": 1})
MEET = Row("meet", "meeting", "launch", 3)


def quiet(_text, _share):
    pass


def plan(rows, *contenders, rounds=2):
    return Plan(rows, contenders, rounds, 0.1, 1000.0)


def test_every_round_of_every_contender_is_kept():
    results = measure(plan([ROW, OTHER], answering("spcomm", 1.0, "spcomm"), answering("peer", 2.0)), quiet)
    assert results.rounds == 2
    assert results.times == {
        key: {"spcomm": [[1.0, 1.0]] * 2, "peer": [[2.0, 2.0]] * 2} for key in ("a", "b")
    }
    assert not results.failures


def test_contenders_take_turns():
    contenders = [answering(name, 1.0) for name in "abc"]
    orders = ["".join(contender.name for contender in turned(contenders, number)) for number in range(4)]
    assert orders == ["abc", "bca", "cab", "abc"]


def test_rows_of_spcomm_alone_are_not_given_to_peers():
    row = Row("own", "own", "barrier", 2, environment={"SPCOMM_WAIT": "sleep"}, peers=False)
    results = measure(plan([row], answering("spcomm", 1.0, "spcomm"), answering("peer", 2.0)), quiet)
    assert list(results.times["own"]) == ["spcomm"]


def test_what_is_missing_is_not_started():
    missing = with_code("peer", "raise SystemExit(1)").__class__(
        "peer", "Peer", "mpi4py", missing="not installed"
    )
    results = measure(plan([ROW], answering("spcomm", 1.0, "spcomm"), missing), quiet)
    assert list(results.times["a"]) == ["spcomm"]
    assert not results.failures


def test_a_failure_is_told_once_and_the_others_go_on():
    failing = with_code("peer", "import sys; sys.exit('no such thing')")
    results = measure(plan([ROW, OTHER], answering("spcomm", 1.0, "spcomm"), failing), quiet)
    assert results.failures == {(key, "peer"): "exit code 1: no such thing" for key in ("a", "b")}
    assert len(results.times["a"]["spcomm"]) == 2


def test_without_a_compiler_plain_c_is_skipped(monkeypatch):
    monkeypatch.setattr(peers.shutil, "which", lambda name: None)
    row = Row("floor", "floor", "plain_c", 2, {"work": "ring", "processes": 2}, peers=False, program="loop")
    results = measure(plan([row, ROW], answering("spcomm", 1.0, "spcomm")), quiet)
    assert results.skipped == {"floor": "no C compiler (cc, gcc, clang) on the path"}
    assert not results.failures and list(results.times) == ["a"]


def test_a_compiler_that_cannot(monkeypatch, tmp_path):
    monkeypatch.setattr(peers.shutil, "which", lambda name: "/bin/false")
    with pytest.raises(module.plain_c.CannotMeasureError, match="/bin/false cannot compile it: "):
        module.plain_c.build("loop", tmp_path)


def test_a_launcher_that_is_not_there():
    class Absent(type(answering("x", 1.0))):
        def start(self, nodes, program, arguments):
            return ["/no/such/launcher"]

    results = measure(plan([ROW], Absent("spcomm", "spcomm", "spcomm")), quiet)
    assert results.failures[("a", "spcomm")].startswith("cannot start /no/such/launcher: ")


def test_a_program_that_never_ends(monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    hanging = with_code("spcomm", "import time; time.sleep(600)", "spcomm")
    results = measure(plan([ROW], hanging), quiet)
    assert results.failures == {("a", "spcomm"): "not finished after 0 s"} and not results.times


def test_launch_checks_how_many_met():
    right = with_code("spcomm", "import sys; print(sys.argv[-1])", "spcomm")
    assert len(one_start([MEET], right, 0.1)["meet"]) == 1
    results = measure(plan([MEET], with_code("spcomm", "print(2)", "spcomm")), quiet)
    assert results.failures == {("meet", "spcomm"): "3 nodes should have met, it said '2'"}


def test_the_environment_reaches_the_program():
    code = "import os; print(os.environ['FROM_ROW'], os.environ['FROM_CONTENDER'])"
    contender = type(answering("x", 1.0))("x", "X", "mpi4py", environment={"FROM_CONTENDER": "b"}, code=code)
    assert run(contender, 2, "works", [], {"FROM_ROW": "a"})[1].split() == ["a", "b"]


# Ends in the work of a row whose name begins with "bad", unless the file that the name's rest stands for is there.
ONE_BAD_ROW = """
import json, os, sys, time
for order in json.loads(sys.argv[3]):
    if order["key"].startswith("bad") and not os.path.exists(order["key"][3:] or "/no/such"):
        {end}
    with open(sys.argv[1], "a") as file:
        print(json.dumps({{order["key"]: [1.0]}}), file=file)
"""


def rows_of_one_start(*keys):
    return [Row(key, key, "barrier", 2) for key in keys]


def test_a_row_that_fails_costs_itself():
    contender = with_code("spcomm", ONE_BAD_ROW.format(end="sys.exit('no memory')"), "spcomm")
    results = measure(plan(rows_of_one_start("a", "bad", "c", "d"), contender, rounds=1), quiet)
    assert results.failures == {("bad", "spcomm"): "exit code 1: no memory"}
    assert {key: found["spcomm"] for key, found in results.times.items()} == {key: [[1.0]] for key in "acd"}


@pytest.mark.parametrize(
    ("moment", "rounds", "kept", "failed"),
    [("round 2", 3, 2, 1), ("once more", 1, 1, 1), ("never", 3, 0, 2), ("never", 1, 0, 2)],
)
def test_a_row_that_fails_is_tried_once_more(tmp_path, moment, rounds, kept, failed):
    """It succeeds in the next round, or after the last one; after its second failure it is left alone."""
    mended, tried = tmp_path / "mended", tmp_path / "tried"
    code = ONE_BAD_ROW.format(end=f"print(order['key'], file=open({str(tried)!r}, 'a')); sys.exit(1)")

    def mend(text, _share):
        if text.startswith(moment):
            mended.touch()

    bad = f"bad{mended}"
    results = measure(
        plan(rows_of_one_start("a", bad), with_code("spcomm", code, "spcomm"), rounds=rounds), mend
    )
    assert len(results.times.get(bad, {}).get("spcomm", [])) == kept
    assert len(results.times["a"]["spcomm"]) == rounds
    assert len(tried.read_text().splitlines()) == failed
    assert bool(results.failures) == (kept == 0)


@pytest.mark.parametrize("ends", [True, False])
def test_a_start_may_last_as_long_as_it_finishes_rows(tmp_path, ends):
    class Process:
        waited = 0

        def wait(self, timeout_s):
            assert timeout_s == module.TIMEOUT
            self.waited += 1
            if self.waited <= 5:
                results.write_text("row\n" * self.waited)
            elif ends:
                return 0
            raise subprocess.TimeoutExpired("works", timeout_s)

    results = tmp_path / "results"
    results.touch()
    if ends:
        assert module.wait(Process(), math.inf, results) == 0
    else:
        with pytest.raises(module.ProgramFailed, match="not finished after 60 s"):
            module.wait(Process(), math.inf, results)


def test_ctrl_c_keeps_the_rows_that_its_start_has_finished(monkeypatch):
    def interrupt(process, _until, path):
        while path.read_text().count("\n") != 2:
            pass
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "wait", interrupt)
    contender = with_code("spcomm", ONE_BAD_ROW.format(end="time.sleep(600)"), "spcomm")
    results = measure(plan(rows_of_one_start("a", "b", "bad"), contender), quiet)
    assert results.interrupted and set(results.times) == {"a", "b"} and not results.failures


def test_the_limit_stops_before_another_round():
    told = []
    limited = Plan([ROW], [answering("spcomm", 1.0, "spcomm")], 50, 0.1, limit=0.0)
    assert measure(limited, lambda *words: told.append(words)).rounds == 1
    assert told[-1] == ("stopped after 1 of 50 rounds: the limit is 0 s", 1.0)


class Clock:
    """Time passes only where a start of the programs takes some."""

    def __init__(self, monkeypatch, seconds):
        self.now, self.ends, self.started = 0.0, [], []
        monkeypatch.setattr(module, "monotonic", lambda: self.now)

        def start(group, contender, _seconds, _repetitions, until, found):
            self.started.append((contender.name, group[0].key))
            self.ends.append(self.now + seconds)
            self.now = min(self.now + seconds, until)
            if self.ends[-1] > until:
                raise module.ProgramFailed("not finished")
            found |= {row.key: [1.0, 1.0] for row in group}

        monkeypatch.setattr(module, "one_start", start)


def crowd(limit, rounds=3):
    """Four groups of spcomm and two peers."""
    rows = [Row(f"r{nodes}", f"{nodes} nodes", "barrier", nodes) for nodes in (2, 3, 4, 5)]
    contenders = [answering("spcomm", 1.0, "spcomm"), answering("peer", 2.0), answering("other", 2.0)]
    return Plan(rows, contenders, rounds, 0.1, limit, is_hard=True)


def test_a_hard_limit_drops_peers_before_points_of_spcomm(monkeypatch):
    clock = Clock(monkeypatch, 1.0)
    results = measure(crowd(limit=6.0), quiet)
    assert clock.now <= 6.0
    assert [key for name, key in clock.started if name == "spcomm"] == ["r2", "r3", "r4", "r5"]
    assert 0 < len([name for name, _ in clock.started if name != "spcomm"]) < 8
    assert not results.failures and not results.interrupted


def test_a_hard_limit_ends_a_later_round_in_its_middle(monkeypatch):
    clock = Clock(monkeypatch, 1.0)
    results = measure(crowd(limit=17.0), quiet)
    assert clock.now == 17.0 and len(clock.started) == 17
    assert (
        sorted(len(rounds) for found in results.times.values() for rounds in found.values())
        == [1] * 7 + [2] * 5
    )


def test_a_program_is_ended_when_the_time_is_up_and_that_is_no_failure(monkeypatch):
    clock = Clock(monkeypatch, 50.0)
    results = measure(crowd(limit=70.0), quiet)
    assert clock.now == 70.0 < max(clock.ends)
    assert not results.failures


def test_points_with_fewer_rounds_than_planned_are_told(monkeypatch):
    Clock(monkeypatch, 1.0)
    chosen = crowd(limit=17.0)
    whole = Report(chosen.rows, chosen.contenders, measure(chosen, quiet)).json()
    assert whole["planned_rounds"] == 3
    assert len(whole["thinned"]) == 12 and {rounds for *_, rounds in whole["thinned"]} == {1, 2}
    Clock(monkeypatch, 1.0)
    chosen = crowd(limit=1000.0)
    assert Report(chosen.rows, chosen.contenders, measure(chosen, quiet)).json()["thinned"] == []


def test_progress_counts_what_has_been_done():
    shares = []
    contender = answering("spcomm", 1.0, "spcomm")
    rows = [ROW, Row("c", "work c", "barrier", 8), Row("d", "work d", "barrier", 8, computing=1)]
    measure(plan(rows, contender), lambda _text, share: shares.append(share))
    assert shares[0] == 0.0 and shares == sorted(shares) and shares[-1] < 1.0 and len(shares) == 6
    assert shares[3] == pytest.approx(0.5)


def test_an_estimate_adds_up_starts_and_works():
    one = Plan([ROW], [answering("spcomm", 1.0, "spcomm")], 1, 1.0, 1000.0)
    contender = one.contenders[0]
    alone = contender.start_s + 2 * contender.node_s + module.WARM_UP + module.SEARCH
    missing = replace(contender, missing="not installed")
    for changes, rounds, seconds in (
        ({}, 1, alone),
        ({"rounds": 7}, 7, 7 * alone),
        ({"rows": [ROW, OTHER]}, 1, alone + module.SEARCH),
        ({"contenders": [contender] * 3}, 1, 3 * alone),
        ({"contenders": [contender, missing]}, 1, alone),
        ({"rounds": 7, "limit": 3.5 * alone}, 3, 3 * alone),
        ({"rounds": 7, "limit": 0.1}, 1, alone),
    ):
        assert estimate(replace(one, **changes)) == (rounds, pytest.approx(seconds))


def test_rows_of_one_group_that_a_contender_cannot_run():
    class Picky(type(answering("x", 1.0))):
        def can_run(self, row):
            return row.key == "b"

    picky = Picky("peer", "Peer", "mpi4py", code=ANSWER % (1.0, 1.0))
    results = measure(plan([ROW, OTHER], answering("spcomm", 1.0, "spcomm"), picky), quiet)
    assert "peer" not in results.times["a"] and results.times["b"]["peer"] == [[1.0, 1.0]] * 2


def test_ctrl_c_keeps_what_was_measured():
    def interrupt(text, _share):
        if text.startswith("round 2"):
            raise KeyboardInterrupt

    results = measure(plan([ROW], answering("spcomm", 1.0, "spcomm"), rounds=3), interrupt)
    assert results.interrupted and results.rounds == 1
    assert results.times["a"]["spcomm"] == [[1.0, 1.0]]


def test_computing_processes_compute_and_end():
    with computing(2):
        pass
    with pytest.raises(RuntimeError), computing(1):
        raise RuntimeError
    # No children left: the leak check of every test sees to it.


def test_a_computing_process_ends_with_its_parent():
    """It shares its standard output with its parent, so the output ends when both are gone."""
    fork_client = (
        "import os, subprocess, sys\n"
        f"subprocess.Popen([sys.executable, {str(module.PROGRAMS / 'compute.py')!r}, str(os.getpid())])\n"
        "print('started', flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", fork_client], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout.readline() == "started\n"
    parent.kill()
    assert parent.communicate(timeout=60) == ("", None)


def test_a_row_and_its_sleeping_variant_are_separate_starts():
    sleeping = Row("s", "s", "barrier", 2, environment={"SPCOMM_WAIT": "sleep"}, peers=False)
    assert grouped([ROW, sleeping, OTHER]) == [[ROW, OTHER], [sleeping]]
