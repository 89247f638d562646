# SPDX-License-Identifier: MIT
"""`spcomm check`: grades files."""

import argparse
import json
import sys
from collections.abc import Sequence

from spcomm.learn.errors import LearnError
from spcomm.learn.grading import CaseGrade, Grade, grade
from spcomm.trace import table


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run `spcomm check`. Returns 0 if all passed, 1 if something did not, 125 if it could not be judged."""
    options = _parser().parse_args(arguments)
    told = []
    code = 0
    for file in options.files:  # what cannot be graded does not keep the others from it
        try:
            found = grade(
                file, options.exercise, options.seed, None if options.json else _show_case, options.quick
            )
        except LearnError as error:
            print(f"spcomm check: {table.printable(str(error))}", file=sys.stderr, flush=True)
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


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="spcomm check",
        description="Grade solutions of exercises: run them with fresh inputs on several numbers of nodes.",
        epilog="Exit code: 0 all passed, 1 something did not, 125 it could not be judged.",
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="exercise.py in a folder NN_topic, or NN_topic.py, or any with --exercise",
    )
    parser.add_argument(
        "--json", action="store_true", help="print a list with a grade for each file, as JSON"
    )
    parser.add_argument("--seed", type=int, metavar="S", help="draw these inputs (default: others each time)")
    parser.add_argument("--exercise", metavar="NN", help="its number or name, or a folder with an exercise")
    parser.add_argument("--quick", action="store_true", help="only the first three cases")
    return parser


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:
        self.print_usage(sys.stderr)
        self.exit(125, f"spcomm check: {message}\n")


def _show_case(case: CaseGrade) -> None:
    print(f"  {'right' if case.passed else 'wrong'}  {case.name}", flush=True)


def _show(found: Grade) -> None:
    name = table.printable(found.file, "")  # files are handed in under any name
    if found.passed:
        print(f"{name}: right in all {len(found.cases)} cases of {found.exercise}", flush=True)
    else:
        print(f"{name}: {found.message}")
        print(f"The same inputs again: --seed {found.seed}", flush=True)
    if found.isolation.startswith("none"):
        print(f"Isolation: {found.isolation}", file=sys.stderr)


def _summary(told: "list[dict]") -> None:
    """A line for each file, in the order of the command line: whoever grades a class copies it from here."""
    names = [table.printable(row["file"], "") for row in told]
    print(f"\n{sum(row['passed'] is True for row in told)} of {len(told)} passed")
    for row, name in zip(told, names, strict=True):
        said = {True: "passed", False: "failed", None: "not judged"}[row["passed"]]
        first = "" if row["passed"] else table.printable(row["message"].partition("\n")[0])
        print(f"  {said:10}  {name:{max(map(len, names))}}  {first}".rstrip())
    sys.stdout.flush()
