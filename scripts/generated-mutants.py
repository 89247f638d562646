# SPDX-License-Identifier: MIT
"""Mutants that nobody has chosen: small changes of the product at places that a hash spreads over the tree.

    make generated-mutants ARGS="RESULTS.jsonl"                       2,000 of the whole product, in days
    make generated-mutants ARGS="RESULTS.jsonl --count 50 csrc/comm"  50 of a folder

Each is judged by the tests that `make near` runs for its file, as in scripts/mutants.py. RESULTS.jsonl gets a line for
each; a further call leaves out those that are there, so that a run can be interrupted and repeated, and files of
several machines be joined (`--part 2/4` takes the second of four parts). A mutant is known by its file, its line and
the change, so results of two commits can be compared where the line is the same.
"""

import argparse
import hashlib
import json
import re
import sys
import time
from collections import Counter

import mutants
import near

CHANGES = [
    (r" == ", " != "), (r" != ", " == "), (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
    (r" \+ ", " - "), (r" - ", " + "), (r" \+= ", " -= "), (r"\b1\b", "2"), (r"\b0\b", "1"),
]  # fmt: skip
IN_C = [
    (r" && ", " || "), (r" \|\| ", " && "), (r"\bif \((.*)\) \{$", r"if (!(\1)) {"), (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"), (r"^(\s+)(?:\(void\))?\w+\(.*\);$", r"\1;"), (r"^(\s+)\S.* = .*;$", r"\1;"),
]  # fmt: skip
IN_PYTHON = [
    (r" and ", " or "), (r" or ", " and "), (r"\bTrue\b", "False"), (r"\bFalse\b", "True"), (r"\bnot ", ""),
    (r" is None\b", " is not None"), (r" is not None\b", " is None"), (r"\bcontinue$", "break"),
    (r"^(\s+)[\w.]+\(.*\)$", r"\1pass"), (r"^(\s+)raise .*$", r"\1pass"), (r"^(\s+)return .+$", r"\1return None"),
]  # fmt: skip
NO_CODE = re.compile(
    r"\s*(#|/?\*|//|@|import |from |cimport |def |cdef |class |static_assert|_Static_assert|\"|$)"
)
PARALLEL = "-n 3 --dist worksteal"
QUICK = "-m 'not slow and not stress'"  # of a whole folder; tests that are named may be slow


def code_lines(path, text):
    """The numbered lines of a file that are neither comments nor docstrings: (number, line, its code)."""
    whole = text.splitlines()
    if path.suffix in (".py", ".pyx"):
        text = re.sub(r'""".*?"""', lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    else:
        text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    code = [line.rstrip() for line in text.splitlines()]
    return [
        (number, whole[number], line)
        for number, line in enumerate(code)
        if not NO_CODE.match(line) and line in whole[number]
    ]


def all_of(places):
    """All mutants of these files and folders, as dictionaries, in an order that a hash gives."""
    found = []
    for path in sorted(path for folder in ("csrc", "spcomm") for path in (mutants.ROOT / folder).rglob("*")):
        name = str(path.relative_to(mutants.ROOT))
        if path.suffix not in (".c", ".pyx", ".py") or (places and not name.startswith(tuple(places))):
            continue
        for number, line, code in code_lines(path, path.read_text()):
            for pattern, replacement in CHANGES + (IN_C if path.suffix == ".c" else IN_PYTHON):
                changed = line.replace(code, re.sub(pattern, replacement, code, count=1))
                if changed != line:
                    key = hashlib.sha256(f"{name}\n{line}\n{changed}".encode()).hexdigest()[:16]
                    found.append({"key": key, "file": name, "line": number, "from": line, "to": changed})
    return sorted({one["key"]: one for one in found}.values(), key=lambda one: one["key"])


def verdict(mutant, tests):
    """ "caught", "SURVIVED", or why nothing follows: mostly, that it does not compile."""
    path = mutants.COPY / mutant["file"]
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    lines[mutant["line"]] = mutant["to"] + "\n"
    try:
        path.write_text("".join(lines))
        mutants.build()
        return "caught" if mutants.tests_fail(tests) else "SURVIVED"
    except mutants.Unusable as problem:
        return f"UNUSABLE: {str(problem)[:200]}"
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.partition("\n")[0])
    parser.add_argument("results", help="the file that gets a line of JSON for each mutant")
    parser.add_argument("places", nargs="*", help="files and folders (default: csrc and spcomm)")
    parser.add_argument("--count", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument("--part", default="1/1", help="K/N: the K-th of N parts of them")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    chosen = all_of(options.places)[: options.count][part - 1 :: parts]
    with open(options.results, "a+", encoding="utf-8") as file, mutants.copied():
        file.seek(0)
        known = {line["key"]: line["verdict"] for line in map(json.loads, file)}
        rows = near.table()
        for mutant in chosen:
            if mutant["key"] in known:
                continue
            start = time.monotonic()
            named = near.of_mutants(mutant["file"])
            tests = [
                f"{words} {PARALLEL}" + ("" if words in named or " -m " in words else f" {QUICK}")
                for words in near.nearest(mutant["file"], rows)
            ]
            known[mutant["key"]] = verdict(mutant, tests) if tests else "UNUSABLE: no test is near"
            print(json.dumps({**mutant, "verdict": known[mutant["key"]]}), file=file, flush=True)
            print(f"{mutant['file']}:{mutant['line'] + 1} {time.monotonic() - start:4.0f} s  "
                  f"{known[mutant['key']]}", flush=True)  # fmt: skip
    counted = Counter(known[mutant["key"]].partition(":")[0] for mutant in chosen)
    print(f"{counted['caught']} caught, {counted['SURVIVED']} survived, {counted['UNUSABLE']} unusable")


if __name__ == "__main__":
    sys.exit(main())
