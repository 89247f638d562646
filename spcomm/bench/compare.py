# SPDX-License-Identifier: MIT
"""`spcomm bench --compare`: a measurement beside an earlier one, with a verdict for each number."""

from collections.abc import Mapping
from typing import Any

from spcomm.bench import statistics, table
from spcomm.bench.neighbours import DISTURBING
from spcomm.bench.results_file import Measurement, ResultsFile
from spcomm.text import counted


def text(old: ResultsFile, new: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """Return a table and remarks; `new` is what `Report.json` returns, `titles` are those of its rows by key."""
    before = {(one.key, one.contender): one for one in old.measurements}
    found = [(entry, before.get((entry["key"], entry["contender"]))) for entry in new["measurements"]]
    lines = [line(titles[entry["key"]], earlier, entry) for entry, earlier in found if earlier]
    header = ["work", "", "before", "now", "now / before", ""]
    parts = [table.render(header, lines, left=(0, 1, 5))] if lines else []
    return "\n".join([*parts, "", *notes(old, new, len(found) - len(lines), len(lines))])


def line(title: str, old: Measurement, new: Mapping[str, Any]) -> list[str]:
    before, now = statistics.summarise(old.samples), statistics.summarise(new["samples"])
    assert before and now  # both files have samples for each measurement
    change = statistics.change(before, now)
    ratio = f"{change.ratio:.2f}"
    if change.interval:
        ratio += " ({:.2f}–{:.2f})".format(*change.interval)
    return [
        title,
        old.contender,
        value(before.median, old.unit),
        value(now.median, old.unit),
        ratio,
        change.verdict,
    ]


def value(number: float, unit: str) -> str:
    return f"{table.number(number * 1e6)} µs" if unit == "s" else f"{table.number(number / 2**20)} MiB"


def notes(old: ResultsFile, new: Mapping[str, Any], missing: int, compared: int) -> list[str]:
    """Return remarks: what the numbers are, and reasons to doubt them."""
    lines = []
    if compared:
        lines.append(
            f"Compared with {old.path} of {old.date}. In brackets: where the ratio lies with"
            f" {table.percent(statistics.CONFIDENCE)} confidence (bootstrap over the rounds)."
        )
        lines.append(
            f'"same": within {table.percent(statistics.SAME)}; "slower" and "faster": more than'
            f" {table.percent(statistics.DIFFERENCE)}, and 1 is outside of the brackets."
        )
        lines.append(
            f'"not good": the largest round exceeds the smallest by more than {table.percent(statistics.GOOD_SPREAD)},'
            " so the rest of the verdict may be chance."
        )
    else:
        lines.append(f"{old.path} has none of these measurements: nothing to compare.")
    if missing and compared:
        lines.append(
            f"{counted(missing, 'measurement')} of this run {'is' if missing == 1 else 'are'} not in it."
        )
    theirs = {key: old.machine.get(key) for key in ("cores", "system", "python")}
    ours = {key: new["machine"].get(key) for key in theirs}
    differing = [f"{key} was {theirs[key]}, is {ours[key]}" for key in theirs if theirs[key] != ours[key]]
    if differing:
        lines.append(f"Another machine or Python, so the difference may be its own: {'; '.join(differing)}.")
    for when, machine in (("then", old.machine), ("now", new["machine"])):
        if (machine.get("busy_with_others") or 0) > DISTURBING:
            lines.append(f"Disturbed {when}: others kept {machine['busy_with_others']:.1f} cores busy.")
    return lines
