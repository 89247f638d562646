# SPDX-License-Identifier: MIT
"""`spcomm check`: grades files."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence

from spcomm.argument_parser import ArgumentParser, whole
from spcomm.learn.errors import LearnError
from spcomm.learn.grading import CaseGrade, Grade, grade
from spcomm.text import counted, printable, whole_number


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run `spcomm check`. Returns 0 if all passed, 1 if something did not, 125 if it could not be judged."""
    options = parser().parse_args(arguments)
    if options.walls == "required":
        from spcomm.learn import sandbox

        try:
            sandbox.require()
        except LearnError as error:
            _complain(error)
            return 125
    if options.csv or options.jobs > 1 or any(map(os.path.isdir, options.files)):
        return _grade_class(options)
    told = []
    code = 0
    for file in options.files:  # a file that cannot be graded does not stop the others
        try:
            found = grade(
                file, options.exercise, options.seed, None if options.json else _show_case, options.quick
            )
        except LearnError as error:
            _complain(error)
            told.append({"file": file, "passed": None, "cases": [], "message": str(error)})
            code = 125
            continue
        told.append(found.as_dict())
        code = code or int(not found.passed)
        if not options.json:
            _show(found)
    if not options.json and len(told) > 1:
        _summary(told)
    if options.json:
        print(json.dumps(told, indent=2), flush=True)
    return code


def _grade_class(options: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, _leave)  # so that no judge goes on alone
    try:
        return _graded_class(options)
    except LearnError as error:
        _complain(error)
        return 125


def _graded_class(options: argparse.Namespace) -> int:
    from spcomm.learn import class_report
    from spcomm.learn.class_grading import ClassGrading
    from spcomm.learn.submissions import handed_in

    students = handed_in(options.files, options.exercise)
    width = max(len(student.student) for student in students)
    grades: dict[int, dict[str, object]] = {}
    shown = 0
    try:
        for number, found in ClassGrading(options.seed, options.quick, options.jobs).grade(students):
            grades[number] = found
            while not options.json and shown in grades:  # by name, however long the one before takes
                class_report.show(class_report.line(grades[shown], width))
                shown += 1
    finally:  # the grades so far are written, also after Ctrl-C
        told = [grades[number] for number in sorted(grades)]
        if options.csv:
            class_report.write_csv(options.csv, told)
        for number in sorted(set(grades) - set(range(shown))) if not options.json else ():
            class_report.show(class_report.line(grades[number], width))
    class_report.show(json.dumps(told, indent=2) if options.json else class_report.summary(told))
    if not options.json:
        class_report.show_isolation(told)
    verdicts = [grade["passed"] for grade in told if not class_report.is_missing(grade)]
    return 125 if None in verdicts else int(verdicts.count(True) < len(told))


def _leave(_number: int, _frame: object) -> None:
    raise SystemExit(143)


def _complain(error: LearnError) -> None:
    print(f"spcomm check: {printable(str(error))}", file=sys.stderr, flush=True)


def parser() -> ArgumentParser:
    made = ArgumentParser(
        "spcomm check",
        "spcomm check FILE... [options]",
        "Grades solutions of exercises: runs them with fresh inputs on several numbers of nodes.",
        "Exit code: 0 if all passed, 1 if one failed or handed in nothing, 125 if one could not be judged.",
        completed="FILE",
    )
    made.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="exercise.py in a folder NN_topic, or NN_topic.py, or any with --exercise; or a folder with "
        "a folder for each student",
    )
    made.add_rows(
        ("--json", None, None, "print a list with a grade for each file, as JSON"),
        ("--seed", "S", _seed, "use this seed for the inputs (default: a new one each time)"),
        ("--exercise", "NN", str, "its number or name, or a folder with an exercise"),
        ("--walls", None, ("any", "required"),
         "required: grade nothing where solutions are not kept apart from this machine (default: any)"),
        ("--quick", None, None, "only the first three cases"),
    )  # fmt: skip
    made.add_rows(
        ("-j, --jobs", "N", whole(1, 256, "files"), "grade N files at a time (default: 1)"),
        ("--csv", "TABLE", str, "write a table for spreadsheets: a row for each student"),
        heading="For a class",
    )
    made.set_defaults(walls="any", jobs=1)
    return made


def _seed(text: str) -> int:
    value = whole_number(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed, a whole number")
    return value


def _show_case(case: CaseGrade) -> None:
    print(f"  {'passed' if case.passed else 'failed'}  {case.name}", flush=True)


def _show(found: Grade) -> None:
    if found.left_out:
        print(f"  not run  {counted(found.left_out, 'run')} more: each could take as long")
    name = printable(found.file, "")  # files are handed in under any name
    if found.passed:
        print(f"{name}: {found.exercise} has passed: {counted(len(found.cases), 'run')}", flush=True)
    else:
        print(f"{name}: {found.exercise} has failed: {found.message}")
        print(f"To repeat these inputs: --seed {found.seed}", flush=True)
    if found.isolation.startswith("none"):
        print(f"Isolation: {found.isolation}", file=sys.stderr)


def _summary(told: "list[dict]") -> None:
    """Print a line for each file, in the order of the command line: teachers copy the grades from here."""
    from spcomm.learn import class_report

    names = [printable(row["file"], "") for row in told]
    print(f"\n{sum(row['passed'] is True for row in told)} of {len(told)} passed")
    for row, name in zip(told, names, strict=True):
        said = class_report.VERDICTS[row["passed"]]
        first = class_report.short(row["message"])
        print(f"  {said:10}  {name:{max(map(len, names))}}  {first}".rstrip())
    sys.stdout.flush()
