#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""``validation.py``: measures the cases of the validation of `spcomm model`, in parts of a minute or two.

Run ``make validation`` on a machine that does nothing else until it says that all is measured. Each call measures one
round over one transport, adds it to ``measurement_1.json`` or ``measurement_2.json`` beside the list, and ends; the
rounds of the two alternate. A part is thrown away if other programs kept more than three quarters of a core busy.
"""

import json
import signal
import statistics
import sys
from pathlib import Path
from typing import Any

from spcomm.bench import peers
from spcomm.bench.cases import paths, sweep
from spcomm.bench.command import interrupt
from spcomm.bench.measure import Plan, measure
from spcomm.bench.report import Report
from spcomm.bench.results_file import Measurement
from spcomm.bench.rows import HOT, MEMORY, TCP, Row
from spcomm.model.validate import read_cases

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "model" / "validation"
LIST = FOLDER / "list.txt"
ROUNDS = 4
NAMES = ("measurement_1", "measurement_2")
PARTS = [(name, transport) for _ in range(ROUNDS) for name in NAMES for transport in (MEMORY, TCP)]
SECONDS, LIMIT = 0.03, 600.0  # for each case, and for a part
DISTURBING = 0.75  # cores


def main() -> int:
    """Measure the first part that is missing. Return 2 if it was thrown away."""
    found = {name: document(FOLDER / f"{name}.json") for name in NAMES}
    done = sum(len(whole["parts"]) for whole in found.values())
    if done == len(PARTS):
        print(f"all {done} parts are measured")
        return 0
    name, transport = PARTS[done]
    rows, contender = [row for row in all_rows() if row.transport == transport], peers.spcomm()
    signal.signal(signal.SIGTERM, interrupt)
    results = measure(Plan(rows, [contender], 1, SECONDS, LIMIT), lambda text, share: None)
    part = f"part {done + 1} of {len(PARTS)}, {name}, {transport}"
    if results.interrupted or results.failures or results.others is None or results.others > DISTURBING:
        print(
            f"{part}: thrown away; failed: {results.failures}; cores that others kept busy: {results.others}"
        )
        return 2
    add(found[name], transport, Report(rows, [contender], results).json())
    write(FOLDER / f"{name}.json", found[name])
    print(f"{part}: {len(rows)} cases; cores that others kept busy: {results.others:.2f}")
    return 0


def document(path: Path) -> dict[str, Any]:
    """Return what was measured, or a document without measurements."""
    return json.loads(path.read_text()) if path.exists() else {"parts": [], "measurements": []}


def all_rows() -> list[Row]:
    """Return the cases of the list, and the calls that LogGP needs, which are never held out."""
    calls = [
        paths.row(name, title, 2, size, transport)
        for transport in (MEMORY, TCP)
        for name, title in paths.OVERHEADS.items()
        for size in paths.SIZES
    ]
    cases = read_cases(str(LIST))
    return calls + [sweep.row(case.operation, case.nodes, case.size, case.transport, HOT) for case in cases]


def add(whole: dict[str, Any], transport: str, found: dict[str, Any]) -> None:
    """Add a round to a measurement: the median of the samples of each case."""
    entries = {entry["key"]: entry for entry in whole["measurements"]}
    for entry in found["measurements"]:
        kept = {name: entry[name] for name in Measurement.__dataclass_fields__} | {"samples": []}
        median = statistics.median(entry["samples"][0])
        entries.setdefault(entry["key"], kept)["samples"].append([float(f"{median:.4g}")])
    for name in ("format", "date", "machine", "versions"):
        whole.setdefault(name, found[name])
    whole["parts"].append([transport, found["date"], round(found["machine"]["busy_with_others"], 3)])
    whole["measurements"] = list(entries.values())


def write(path: Path, whole: dict[str, Any]) -> None:
    """Write a measurement as JSON, a line for each case."""
    rest = {name: value for name, value in whole.items() if name != "measurements"}
    lines = ",\n".join(json.dumps(entry) for entry in whole["measurements"])
    path.write_text(f'{json.dumps(rest)[:-1]}, "measurements": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    sys.exit(main())
