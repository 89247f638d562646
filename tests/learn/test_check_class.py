# SPDX-License-Identifier: MIT
"""`spcomm check` over what a class has handed in: a row for each, whatever becomes of the others."""

import csv
import json
import os
import shutil
import signal

import pytest

from classes import EXERCISE, STUB, attack, command, grades, hand_in, own_exercise, schema
from programs import finish, start
from spcomm.learn import catalogue, class_report, failure_text, running
from spcomm.learn.case import Case, Wrong
from spcomm.learn.errors import LearnError
from spcomm.learn.submissions import handed_in

RIGHT = attack("right")
KINDS = ("right", "exits", "prints_lines", "loop", "forks")
ENDS = """
import os
def judge(case, outcome, before=judge):
    if outcome.values[0] is None:
        os._exit(9)
    before(case, outcome)
"""
WAITS = """
import os, signal
def cases(rng, before=cases):
    try:
        os.mkdir(__file__ + ".first")
    except FileExistsError:
        open(__file__ + ".begun", "w").close()
        signal.pause()
    return before(rng)
"""


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def a_class(folder, count):
    """One of each kind, and else solutions and untouched files in turn."""
    for number in range(count):
        program = attack(KINDS[number]) if number < len(KINDS) else (RIGHT, STUB)[number % 2]
        hand_in(folder, f"s{number:02}", program)
    (folder / "s98").mkdir()


def passed(number):
    return number == 0 if number < len(KINDS) else number % 2 == 0


@pytest.mark.slow
@pytest.mark.parametrize("count", [7, pytest.param(40, marks=pytest.mark.stress)])
def test_a_class(tmp_path, count):
    a_class(tmp_path / "in", count)
    table = tmp_path / "t.csv"
    found = grades("-j", 2, "--csv", table, tmp_path / "in", code=1)
    assert [found[f"s{number:02}"]["passed"] for number in range(count)] == list(map(passed, range(count)))
    assert found["s98"]["passed"] is None and found["s98"]["missing"] is True
    assert "nothing was handed in" in found["s98"]["message"]
    assert "took longer than" in found["s03"]["message"]
    assert "does it fork without end?" in found["s04"]["message"]
    assert len({grade["seed"] for grade in found.values() if "seed" in grade}) == 1
    told = rows(table)
    assert list(told) == sorted(found)
    assert [told["s00"][name] for name in ("passed", "right", "of")] == ["yes", "1", "1"]
    assert [told["s03"][name] for name in ("passed", "right", "of")] == ["no", "0", "1"]
    assert told["s98"]["passed"] == "no"


@pytest.mark.slow
def test_lines_for_people(tmp_path):
    hand_in(tmp_path / "in", "ada", RIGHT)
    hand_in(tmp_path / "in", "barbara", STUB)
    done = finish(start(command(tmp_path / "in")))
    assert done.code == 1, done
    ada, barbara, summary = done.out.splitlines()
    assert ada.split() == ["ada", "passed", "1/1"]
    assert barbara.startswith("barbara  failed        0/1  node 0 returned None; expected")
    assert summary == "2 handed in: 1 passed, 1 failed, 0 not judged"


@pytest.mark.slow
def test_lines_are_in_the_order_of_names(tmp_path):
    """Results that need no judge are known first, and are not shown first."""
    (tmp_path / "in" / "ada").mkdir(parents=True)
    hand_in(tmp_path / "in", "bob", RIGHT)
    hand_in(tmp_path / "in", "carl", STUB)
    (tmp_path / "in" / "dora").mkdir()
    done = finish(start(command("-j", 2, tmp_path / "in")))
    assert [line.split()[0] for line in done.out.splitlines()[:-1]] == ["ada", "bob", "carl", "dora"], done


@pytest.mark.slow
def test_a_judge_that_ends_keeps_no_other_from_its_grade(tmp_path):
    exercise = own_exercise(tmp_path, ENDS)
    for name, program in (("ada", STUB), ("bob", RIGHT)):
        hand_in(tmp_path / "in", name, program)
    found = grades(tmp_path / "in", code=125, exercise=exercise)
    assert found["ada"]["message"] == "the judge ended with exit code 9"
    assert found["bob"]["passed"] is True


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_is_known_is_kept_when_it_is_ended(tmp_path, number, code):
    exercise = own_exercise(tmp_path, WAITS)
    begun = exercise / "check.py.begun"
    os.mkfifo(begun)
    for name in ("ada", "bob"):
        hand_in(tmp_path / "in", name, RIGHT)
    process = start(command("--csv", tmp_path / "t.csv", tmp_path / "in", exercise=exercise))
    with open(begun):  # until the second is being judged
        pass
    process.send_signal(number)
    done = finish(process)
    assert done.code == code, done
    assert list(rows(tmp_path / "t.csv")) == ["ada"]


@pytest.mark.slow
def test_files_and_folders(tmp_path):
    """Names of files count as names of students, too."""
    hand_in(tmp_path, "in", STUB, name="ada.py")
    other = shutil.copy(RIGHT, tmp_path / "other.py")
    found = grades(tmp_path / "in", other, tmp_path / "none.py", code=125)
    assert {name: grade["passed"] for name, grade in found.items()} == {
        "ada": False,
        str(other): True,
        str(tmp_path / "none.py"): None,
    }


def test_one_file_is_as_the_schema_says(tmp_path):
    done = finish(start(command("--json", RIGHT, STUB, tmp_path / "no.py")))
    found = json.loads(done.out)
    assert [grade["passed"] for grade in found] == [True, False, None]
    assert not [error.message for error in schema().iter_errors(found)]
    assert [error.message for error in schema().iter_errors([{**found[0], "passed": None}])]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["a.py"], "a.py"),
        (["deep/er/a.py"], "deep/er/a.py"),
        (["exercise.py", "helper.py"], "exercise.py"),
        (["exercise.py", "01_sum.py"], "01_sum.py"),
        (["01_sum/exercise.py", "02_other/exercise.py"], "01_sum/exercise.py"),
        (["__MACOSX/exercise.py", ".venv/b.py", "__pycache__/c.py", "._exercise.py", "a.py"], "a.py"),
    ],
)
def test_which_file_it_is(tmp_path, names, chosen):
    for name in names:
        hand_in(tmp_path, "ada", STUB, name=name)
    [found] = handed_in([str(tmp_path)], str(EXERCISE))
    assert (found.student, found.problem) == ("ada", "")
    assert found.file == tmp_path / "ada" / chosen


@pytest.mark.parametrize(
    ("names", "problem"),
    [(["a.py", "b.py"], "2 Python files"), (["x/exercise.py", "y/exercise.py"], "keep one exercise.py")],
)
def test_several_that_it_could_be(tmp_path, names, problem):
    for name in names:
        hand_in(tmp_path, "ada", STUB, name=name)
    [found] = handed_in([str(tmp_path)], str(EXERCISE))
    assert problem in found.problem


def test_links_are_not_followed(tmp_path):
    """An archive can bring a link to the solution of the one who unpacks it."""
    for place in (tmp_path / "ada", tmp_path / "behind"):
        place.mkdir()
    (tmp_path / "ada" / "exercise.py").symlink_to(RIGHT)
    (tmp_path / "bob").symlink_to(tmp_path / "behind")
    problems = {one.student: one.problem for one in handed_in([str(tmp_path)], str(EXERCISE))}
    assert "nothing was handed in" in problems["ada"]
    assert "is a link" in problems["bob"]


def test_the_folder_says_which_exercise_it_is(tmp_path):
    hand_in(tmp_path / "02_split", "ada", STUB)
    [found] = handed_in([str(tmp_path / "02_split")], None)
    assert found.exercise == catalogue.find("2")
    with pytest.raises(LearnError, match="give it the name of the exercise"):
        handed_in([str(tmp_path)], None)


def test_nothing_in_a_folder(tmp_path):
    with pytest.raises(LearnError, match=r"nothing in .* can be graded"):
        handed_in([str(tmp_path)], str(EXERCISE))


def test_names_do_nothing_to_terminals_and_spreadsheets(tmp_path):
    grade = {"student": "=1+1\x1b[2J", "passed": None, "cases": [], "message": "@now\nand more", "file": "f"}
    assert class_report.line(grade, 4) == "=1+1\ufffd[2J  not judged         @now"
    class_report.write_csv(str(tmp_path / "t.csv"), [grade])
    [row] = rows(tmp_path / "t.csv").values()
    assert (row["student"], row["message"]) == ("'=1+1\x1b[2J", "'@now | and more")


MORE_CASES = """
def cases(rng, before=cases):
    for _ in range(3):
        yield from before(rng)
"""
HANGS_LATE = """
import spcomm

def solve(comm, items):
    if comm.rank == 1:
        while True: pass
    comm.recv(source=1)
"""


@pytest.mark.slow
def test_a_hang_and_a_student_without_a_file_are_a_line_each(tmp_path):
    """The line of the loop, not that of the node that waits for it; the message of a grade has more."""
    exercise = own_exercise(tmp_path, MORE_CASES)
    hand_in(tmp_path / "in", "ada", RIGHT)
    (tmp_path / "in" / "ben.py").write_text(HANGS_LATE)
    (tmp_path / "in" / "cy").mkdir()
    done = finish(start(command("--csv", tmp_path / "t.csv", tmp_path / "in", exercise=exercise)))
    assert done.code == 1, done
    where = "the program did not finish within 10 s: node 1 was at ben.py:6 in solve (2 nodes)"
    lines = sorted(done.out.splitlines())
    assert lines[0] == "2 handed in: 1 passed, 1 failed, 0 not judged; 1 handed in nothing"
    assert lines[1].split() == ["ada", "passed", "3/3"]
    assert lines[2] == f"ben  failed        0/3  (2 not run) {where}"
    assert lines[3].startswith("cy   missing            there is no Python file in ")
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 4
    told = rows(tmp_path / "t.csv")
    assert told["ben"]["message"].startswith(f"{where} | ") and "--timeout 10 s" in told["ben"]["message"]
    shown = {name: tuple(told[name][key] for key in ("passed", "right", "of", "not_run")) for name in told}
    assert shown == {"ada": ("yes", "3", "3", "0"), "ben": ("no", "0", "3", "2"), "cy": ("no", "0", "0", "0")}
    assert {row["isolation"] for row in told.values()} <= {"bubblewrap", "none", ""}
    done = finish(start(command(tmp_path / "in" / "ben.py", exercise=exercise)))
    assert done.code == 1 and "  not run  2 runs more: each could take as long\n" in done.out
    (tmp_path / "in" / "ben.py").unlink()
    assert finish(start(command(tmp_path / "in", exercise=exercise))).code == 1
    (tmp_path / "in" / "cy").rmdir()
    assert finish(start(command(tmp_path / "in", exercise=exercise))).code == 0


@pytest.mark.parametrize(
    ("code", "said", "wanted"),
    [
        (
            124,
            ["spcomm: where the nodes were:", "  node 0  recv(source=1)  a.py:7 in solve", "  node 1  a.py:5 in f"],
            "the program did not finish within 20 s: node 1 was at a.py:5 in f (3 nodes)",
        ),
        (
            124,
            ["spcomm: where the nodes were:", "  nodes 0, 2  a.py:5", "  node 1  recv(source=0)  a.py:9"],
            "the program did not finish within 20 s: nodes 0, 2 were at a.py:5 (3 nodes)",
        ),
        (124, [], "the program did not finish within 20 s (3 nodes)"),
        (
            99,
            ["spcomm: DEADLOCK — all wait", "  node 0 ..."],
            "the program did not finish: DEADLOCK — all wait (3 nodes)",
        ),
        (99, [], "the program did not finish (3 nodes)"),
    ],
)  # fmt: skip
def test_the_first_line_of_a_message_stands_for_itself(code, said, wanted):
    ended = running.Run(Case(3, {}), code, errors=[(None, line) for line in said])
    with pytest.raises(Wrong) as error:
        failure_text.values_of(ended, "a.py", catalogue.Limits())
    first, *others = str(error.value).split("\n")
    assert first == wanted
    assert others == [line for line in said if "DEADLOCK" not in line]


def test_a_table_that_cannot_be_written(tmp_path):
    hand_in(tmp_path / "in", "ada", RIGHT)
    done = finish(start(command("--csv", tmp_path / "no" / "t.csv", tmp_path / "in")))
    assert done.code == 125
    assert "t.csv cannot be written: No such file or directory" in done.err
