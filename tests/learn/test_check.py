# SPDX-License-Identifier: MIT
"""`spcomm check` and grade(): what is printed, exit codes, whose fault it is."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from classes import attack
from programs import finish, start
from spcomm.learn import LearnError, check_script, grade, grading
from spcomm.learn.case import Case, Wrong
from spcomm.learn.running import Run

EXERCISE = Path(__file__).parent / "room" / "01_sum"
RIGHT = attack("right")
STUB = EXERCISE / "exercise.py"
INFO = """
title = "T"
teaches = "T."
needs = []
hints = ["a", "b", "c"]
stub_says = "None"
[limits]
seconds = 60
"""
CHECK = """
from spcomm.learn.case import Case, Wrong, per_node

def cases(rng):
    for nodes in (1, 2, 3, 2):
        yield Case(nodes, {"a": 1}, each=[{"b": rank} for rank in range(nodes)], name=f"case of {nodes}")

def judge(case, outcome):
    per_node(case, outcome, [1 + rank for rank in range(case.nodes)])
"""
SOLUTION = """
def solve(comm, a, b):
    print("node", comm.rank)
    return a + b
"""


@pytest.fixture
def room(tmp_path):
    """An exercise that tests change as they like; it is solved."""
    place = tmp_path / "05_own"
    place.mkdir()
    for name, text in (
        ("README.md", "x"),
        ("exercise.py", SOLUTION),
        ("check.py", CHECK),
        ("info.toml", INFO),
    ):
        (place / name).write_text(text)
    return place


def spcomm(*words, code):
    result = finish(start([sys.executable, "-m", "spcomm", *map(str, words)]))
    assert result.code == code, result.err
    return result


def test_right(tmp_path):
    done = spcomm("check", "--exercise", EXERCISE, RIGHT, code=0)
    assert "  passed  2 nodes\n" in done.out
    assert "right.py: 01_sum has passed: 1 run\n" in done.out
    assert "of 1 passed" not in done.out, "one file needs no summary"


def test_untouched():
    done = spcomm("check", "--exercise", EXERCISE, STUB, "--seed", "7", code=1)
    assert "  failed  2 nodes\n" in done.out
    assert "exercise.py: 01_sum has failed: node 0 returned None; expected" in done.out
    assert "--seed 7" in done.out


@pytest.mark.slow
def test_json():
    done = spcomm("check", "--json", "--exercise", EXERCISE, RIGHT, STUB, code=1)
    right, wrong = json.loads(done.out)
    assert right["passed"] is True
    assert right["exercise"] == "01_sum"
    assert right["message"] == ""
    assert right["cases"] == [{"name": "2 nodes", "passed": True, "message": ""}]
    assert isinstance(right["seed"], int)
    assert right["isolation"]
    assert wrong["passed"] is False
    assert wrong["message"] == wrong["cases"][0]["message"] != ""


@pytest.mark.slow
def test_a_class_is_summed_up_in_a_line_each(tmp_path):
    gone = tmp_path / "no.py"
    done = spcomm("check", "--seed", "7", "--exercise", EXERCISE, RIGHT, STUB, gone, code=125)
    assert done.out.count("\n1 of 3 passed\n") == 1
    right, wrong, missing = done.out.rpartition("1 of 3 passed\n")[2].splitlines()
    assert right.split() == ["passed", str(RIGHT)]
    assert wrong.startswith(f"  failed      {STUB} ") and "node 0 returned None; expected" in wrong
    assert missing.startswith(f"  not judged  {gone} ") and "does not exist" in missing


@pytest.mark.slow
def test_usage(tmp_path):
    assert "no exercise" in spcomm("check", "--exercise", "77", STUB, code=125).err
    assert "does not exist" in spcomm("check", "--exercise", EXERCISE, tmp_path / "no.py", code=125).err
    assert "can be graded" in spcomm("check", "--exercise", EXERCISE, tmp_path, code=125).err
    (tmp_path / "notes.txt").touch()
    done = spcomm("check", "--exercise", EXERCISE, tmp_path / "notes.txt", code=125)
    assert "is not a Python file" in done.err
    assert "required: FILE" in spcomm("check", code=125).err
    long = spcomm("check", "--exercise", EXERCISE, "n" * 5000 + ".py", code=125).err
    assert "cannot use nnn" in long and "File name too long" in long and len(long) < 400
    assert "a name of 5000 letters" in spcomm("check", "--exercise", "9" * 5000, STUB, code=125).err
    assert "name too long" in spcomm("check", "--exercise", "./" + "n" * 300, STUB, code=125).err
    os.mkfifo(tmp_path / "pipe.py")
    text = spcomm("check", "--exercise", EXERCISE, tmp_path / "pipe.py", code=125).err
    assert "pipe.py is a folder, a pipe or a device, not a file" in text
    shutil.copy(STUB, tmp_path / "mine.py")
    assert "--exercise" in spcomm("check", tmp_path / "mine.py", code=125).err


@pytest.mark.slow
def test_names_and_words_steer_no_terminal(room):
    """Files are handed in under any name; what is said of a trace is said of what a program has written."""
    evil = shutil.copy(room / "exercise.py", room / "\x1b[2J.py")
    checks = CHECK.replace("per_node(", 'raise Wrong("\\x1b]0;owned\\x07 \\u202e")\n    per_node(')
    (room / "check.py").write_text(checks)
    done = spcomm("check", "--quick", "--exercise", room, evil, evil, code=1)
    assert "0 of 2 passed" in done.out
    assert "\ufffd[2J.py: 05_own has failed: \ufffd]0;owned\ufffd \ufffd" in done.out
    assert "\x1b" not in done.out + done.err


@pytest.mark.slow
def test_each_and_callback(room):
    seen = []
    found = grade(room / "exercise.py", str(room), seed=3, on_case=seen.append)
    assert found.passed, found.message
    assert [case.name for case in found.cases] == ["case of 1", "case of 2", "case of 3", "case of 2"]
    assert tuple(seen) == found.cases
    assert found.seed == 3


def test_cases_go_on_after_each_run_was_judged(room):
    (room / "check.py").write_text(
        "from spcomm.learn.case import Case\nseen = []\n"
        "def cases(rng):\n    while len(seen) < 2:\n"
        "        yield Case(1, {'a': 1, 'b': 2}, facts={'number': len(seen)})\n"
        "def judge(case, outcome):\n    seen.append(case.facts['number'])\n    assert seen[-1] == len(seen) - 1\n"
    )
    assert len(grade(room / "exercise.py", str(room)).cases) == 2


def test_an_endless_list_of_cases(room, monkeypatch):
    monkeypatch.setattr(check_script, "_MOST", 2)
    (room / "check.py").write_text(CHECK.replace("for nodes in (1, 2, 3, 2)", "nodes = 1\n    while True"))
    with pytest.raises(LearnError, match="more than 2 cases"):
        grade(room / "exercise.py", str(room))


@pytest.mark.slow
def test_quick(room):
    assert len(grade(room / "exercise.py", str(room), quick=True).cases) == grading.QUICK


@pytest.mark.slow
def test_a_seed_draws_the_same_inputs():
    first, again, other = (grade(STUB, str(EXERCISE), seed=seed).message for seed in (1, 1, 2))
    assert first == again != other


def test_output_has_no_labels_and_no_results(room):
    (room / "check.py").write_text(
        "from spcomm.learn.case import Case, Wrong\n"
        "def cases(rng):\n    yield Case(2, {'a': 'x' * 9000, 'b': 'y'})\n"
        "def judge(case, outcome):\n"
        "    assert sorted(outcome.output.split('\\n')) == ['', 'node 0', 'node 1'], outcome.output\n"
        "    assert outcome.values == ['x' * 9000 + 'y'] * 2\n"
    )
    assert grade(room / "exercise.py", str(room)).passed


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def cases(:", "check.py: cannot be imported: SyntaxError"),
        ("1 / 0", "check.py:1: cannot be imported: ZeroDivisionError"),
        ("def cases(rng):\n    return []", "has no function judge"),
        ("def judge(c, o): pass\ndef cases(rng):\n    return []", "yields no case"),
        (
            "def judge(c, o): pass\ndef cases(rng):\n    return [3]",
            r"cases\(\) failed: TypeError: .* yields int",
        ),
        ("def judge(c, o): pass\ndef cases(rng):\n    return [rng.x]", r"check.py:3: cases\(\) failed: Attr"),
        (CHECK.replace("per_node(", "len("), r"judge\(\) failed in case 'case of 1': TypeError"),
        (CHECK.replace('{"a": 1}', '{"a": len}'), "arguments of case 'case of 1' have an object of type"),
        (CHECK.replace('name=f"', 'options=("--map", "9"), name=f"'), "spcomm run refuses case 'case of 1'"),
    ],
)
def test_faults_of_check(room, text, complaint):
    (room / "check.py").write_text(text)
    with pytest.raises(LearnError, match=complaint):
        grade(room / "exercise.py", str(room))


def test_fault_of_check_is_told(room):
    (room / "check.py").write_text("1 / 0")
    done = spcomm("check", "--exercise", room, room / "exercise.py", code=125)
    assert "a fault of the exercise, not of the solution" in done.err


def test_syntax_error(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import spcomm\n\n\ndef solve(comm, items:\n    return 0\n")
    message = grade(wrong, str(EXERCISE)).message
    assert "raised SyntaxError" in message
    assert "at wrong.py:4: def solve(comm, items:" in message


@pytest.mark.parametrize(
    "encoding, declared, error",
    [
        ("latin-1", "", "SyntaxError: Non-UTF-8 code starting with '\\xfc' in file"),
        ("utf-16", "", "SyntaxError: Non-UTF-8 code starting with '\\xff' in file"),
        ("latin-1", "# coding: latin-1\n", ""),
        ("utf-8-sig", "", ""),
    ],
)
def test_an_encoding_that_python_refuses(tmp_path, encoding, declared, error):
    program = tmp_path / "encoded.py"
    program.write_text(f"{declared}# grüße\n{RIGHT.read_text(encoding='utf-8')}", encoding=encoding)
    message = grade(program, str(EXERCISE)).message
    assert (f"raised {error}" in message) if error else not message, message


@pytest.mark.slow
@pytest.mark.parametrize("name", ["json.py", "spcomm.py", "numpy.py", "my solution.py", "01-a.py"])
def test_any_name_of_a_file(tmp_path, name):
    shutil.copy(RIGHT, tmp_path / name)
    found = grade(tmp_path / name, str(EXERCISE))
    assert found.passed, found.message


@pytest.mark.parametrize("data", [None, b"", b"\xff", b"{", b'{"traceEvents": 7}'])
def test_a_trace_that_is_none(data):
    outcome = grading.Recorded([1], Run(Case(1), 0, trace=data))
    with pytest.raises(Wrong, match="the program's trace cannot be read"):
        assert outcome.calls


@pytest.mark.slow
def test_lost_events(room):
    (room / "exercise.py").write_text(
        "def solve(comm, a, b):\n    for _ in range(70_000):\n        comm.barrier()\n    return a + b\n"
    )
    checks = CHECK.replace("(1, 2, 3, 2)", "(1,)").replace("per_node(", "assert outcome.calls\n    per_node(")
    (room / "check.py").write_text(checks)
    assert (
        "node 0 made more calls than the judge can record" in grade(room / "exercise.py", str(room)).message
    )


@pytest.mark.slow
def test_after_a_limit_nothing_more_is_run(room):
    (room / "info.toml").write_text(INFO.replace("seconds = 60", "seconds = 1"))
    (room / "exercise.py").write_text("def solve(comm, a, b):\n    while True:\n        pass\n")
    found = grade(room / "exercise.py", str(room))
    assert len(found.cases) == 1
    assert "took longer than --timeout 1 s" in found.message


def test_virtual_clock(room):
    (room / "exercise.py").write_text(
        "def solve(comm, a, b):\n    comm.work(10 * (b + 1))\n    comm.barrier()\n    comm.work(1)\n    return a + b\n"
    )
    (room / "check.py").write_text(
        CHECK + "    assert outcome.work == [10 * rank + 11 for rank in range(case.nodes)]\n"
        "    assert outcome.makespan == 10 * case.nodes + 1 == max(outcome.finish)\n"
    )
    assert grade(room / "exercise.py", str(room)).passed


@pytest.mark.slow
def test_no_virtual_clock(room):
    (room / "exercise.py").write_text(
        "import threading\ndef solve(comm, a, b):\n    thread = threading.Thread(target=comm.work, args=(1,))\n"
        "    thread.start()\n    comm.work(1)\n    thread.join()\n    return a + b\n"
    )
    (room / "check.py").write_text(CHECK + "    assert outcome.makespan\n")
    assert "the virtual clock cannot be computed" in grade(room / "exercise.py", str(room)).message
