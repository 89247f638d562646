# SPDX-License-Identifier: MIT
"""Every exercise fails as it is given out, with the words it is meant to; solutions pass; wrong ones are told why.

All folders of exercises/ are found; nothing is listed. wrong/<exercise>.txt has wrong solutions, as changes of ours,
and what the judge must say of each; a program in right/<exercise>/ solves it in another way than we do.
"""

import copy
import re
from dataclasses import InitVar, dataclass
from pathlib import Path

import numpy as np
import pytest

import entries
from pairwise import each
from spcomm.learn import case as api
from spcomm.learn import catalogue, grade
from spcomm.learn.check_script import Check

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FOLDER = ROOT / "exercises"
EXERCISES = catalogue.exercises(FOLDER)
SEEDS = (1, 20, 300)
LINES = 60  # of code
ODD = [np.array([1.0, 2.0]), 10**5000, float("nan"), [[1], [[2]]], b"7", None, {"a": 1}]
NAMES = [exercise.name for exercise in EXERCISES]
JUDGED_BY_VALUES = [
    exercise for exercise in EXERCISES if exercise.name != "09_fuzzy"
]  # that one by its trace alone

every = pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)


@dataclass(frozen=True)
class Wrong:
    """A wrong solution, and what must be said of it."""

    exercise: str
    name: str
    says: str
    program: str


def wrong_solutions(path):
    """Those of a file (entries.py): after "says: ..." the lines of our solution that change, in hunks with an empty
    line between them. Without lines that go, the others are the whole program."""
    solution = (FOLDER / "solutions" / f"{path.stem}.py").read_text()
    for entry in entries.read(path, "says"):
        program = solution
        for hunk in reversed(entry.program.strip("\n").split("\n\n")):
            old, new = (
                "".join(f"{line[1:]}\n" for line in hunk.split("\n") if line[0] == sign) for sign in "-+"
            )
            assert not old or f"\n{program}".count(f"\n{old}") == 1, f"{entry.name}: {old}"
            program = f"\n{program}".replace(f"\n{old}", f"\n{new}")[1:] if old else new
        yield Wrong(path.stem, entry.name, entry.get("says"), program)


@dataclass(frozen=True)
class Solved:
    """A solution, graded with a seed."""

    seed: int
    path: InitVar[Path]

    def __post_init__(self, path):
        object.__setattr__(self, "file", path)


WRONG = [wrong for path in sorted((HERE / "wrong").glob("*.txt")) for wrong in wrong_solutions(path)]
RIGHT = sorted((HERE / "right").glob("*/*.py"))
SOLVED = [Solved(seed, exercise.solution) for exercise in EXERCISES for seed in SEEDS]


class Found(Exception):
    """A case that failed: the others need not be run."""


def says_at_first(path, exercise):
    """The judge's message for the first case that is wrong; empty if there is none."""

    def stop(case):
        if not case.passed:
            raise Found(case.message)

    try:
        grade(path, exercise, on_case=stop)
    except Found as found:
        return str(found)
    return ""


def code(path):
    """Lines that are neither empty nor a comment."""
    lines = [line.strip() for line in path.read_text().split("\n")]
    return [line for line in lines if line and not line.startswith("#")]


def first_of_each(cases, key):
    """One case of every fourth kind for `make test`; one of each are slow tests, and the others run with all."""
    seen = set()
    for case in cases:
        marks = pytest.mark.stress if key(case) in seen else pytest.mark.slow if len(seen) % 4 else ()
        seen.add(key(case))
        yield pytest.param(case, marks=marks)


def test_numbers_are_those_of_a_course():
    numbers = [exercise.number for exercise in EXERCISES]
    assert len(numbers) >= 8 and numbers == list(range(1, len(numbers) + 1))
    assert sorted(path.stem for path in (FOLDER / "solutions").glob("*.py")) == NAMES


@every
def test_info_is_complete(exercise):
    assert len(exercise.hints) == 3 and len(set(exercise.hints)) == 3
    assert "?" in exercise.hints[0], "the first hint is a question"
    assert exercise.teaches.endswith(".") and len(exercise.stub_says) > 5
    before = NAMES[: NAMES.index(exercise.name)]
    assert [name for name in exercise.needs if name not in before] == []
    assert bool(exercise.needs) == (exercise.number > 1)


@every
def test_hints_are_not_the_solution(exercise):
    body = exercise.solution.read_text().partition("\nimport ")[2].partition("if __name__")[0]
    lines = [line.strip() for line in body.split("\n")[1:] if line.strip() and not line.startswith("def ")]
    given = exercise.stub.read_text() + " ".join(exercise.hints)
    assert [line for line in lines if line not in given], "the hints have all lines of the solution"


@every
def test_the_lesson_has_its_parts(exercise):
    text = exercise.lesson
    assert text.startswith(f"# {exercise.number}. {exercise.title}\n")
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert {"Task", "Run and check"} <= set(sections) and len(sections) >= 3
    end = text.partition("## Run and check\n")[2]
    assert "spcomm run -n" in end and "spcomm check exercise.py" in end and "\nChecked" in end
    assert 25 <= len(text.split("\n")) <= 110, "one or two screens"
    assert max(len(line) for line in text.split("\n") if not line.startswith("|")) <= 160


@every
def test_programs_are_short_and_can_be_run(exercise):
    for path in (exercise.stub, exercise.solution):
        assert len(code(path)) < LINES, path
        text = path.read_text()
        assert re.search(rf'^"""Exercise {exercise.number}(: |, solved: )', text, re.MULTILINE)
        assert "\nif __name__ ==" in text
    assert "# TODO" in exercise.stub.read_text() and "TODO" not in exercise.solution.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("exercise", each(4, EXERCISES), ids=NAMES)
def test_untouched_it_fails_as_intended(exercise):
    assert exercise.stub_says in says_at_first(exercise.stub, exercise)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [*first_of_each(SOLVED, lambda case: case.file)], ids=lambda case: f"{case.file.stem}-{case.seed}"
)
def test_solutions_pass(case):
    found = grade(case.file, seed=case.seed)
    assert found.passed, found.message


@pytest.mark.stress
@pytest.mark.parametrize("path", RIGHT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_other_ways_pass(path):
    assert says_at_first(path, path.parent.name) == ""


def test_each_exercise_has_wrong_solutions():
    counts = [sum(case.exercise == name for case in WRONG) for name in NAMES]
    assert min(counts) >= 2 and {case.exercise for case in WRONG} == set(NAMES)
    assert [case.name for case in WRONG if not case.says] == []
    for case in WRONG:
        compile(case.program, case.name, "exec")


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [*first_of_each(WRONG, lambda case: case.exercise)],
    ids=lambda case: f"{case.exercise}-{case.name}",
)
def test_wrong_solutions_are_told_why(case, tmp_path):
    program = tmp_path / "exercise.py"
    program.write_text(case.program)
    assert case.says in says_at_first(program, case.exercise)


def replaced(value, odd):
    """Yield the odd value itself, and the value with an odd part: a new one, or the first, middle or last one."""
    yield odd
    if isinstance(value, (list, tuple)):
        for part in replaced(value[0], odd) if value else [odd]:
            yield type(value)([part, *value])
        for place in sorted({0, len(value) // 2, len(value) - 1}) if value else ():
            for part in replaced(value[place], odd):
                yield type(value)([*value[:place], part, *value[place + 1 :]])


def odd_runs(right):
    """Yield what all nodes returned, with each odd value in place of what the first or the last node returned."""
    for rank in {0, len(right) - 1}:
        for odd in ODD:
            for value in replaced(right[rank], odd):
                if not api.same(value, right[rank]):
                    yield [*right[:rank], value, *right[rank + 1 :]]


@pytest.mark.slow
@pytest.mark.parametrize("exercise", JUDGED_BY_VALUES, ids=lambda exercise: exercise.name)
def test_odd_values_are_wrong(exercise, monkeypatch):
    """Every run of the solution is judged again with odd values: none is right, or a fault of the exercise."""
    judge = Check.judge

    def judge_odd_values_first(check, case, outcome):
        for values in odd_runs(outcome.values):
            outcome_of_odd = copy.copy(outcome)
            outcome_of_odd.values = values
            with pytest.raises(api.Wrong):
                judge(check, case, outcome_of_odd)
        judge(check, case, outcome)

    monkeypatch.setattr(Check, "judge", judge_odd_values_first)
    assert grade(exercise.solution, exercise, seed=1).passed
