# SPDX-License-Identifier: MIT
"""`spcomm model validate`: errors of held-out cases beside the spread of a second measurement, as text or Markdown."""

import re
from collections.abc import Iterable, Sequence

from spcomm.argument_parser import ArgumentParser, whole
from spcomm.model import ModelError, measured
from spcomm.model.loggp import TRANSPORTS
from spcomm.model.predict_command import within
from spcomm.model.settings import time_text
from spcomm.model.validate import Checked, median_error, read_cases, validate
from spcomm.text import aligned

SHOWN, MOST_SHOWN = 12, 1_000_000  # worst cases


def main(words: Sequence[str]) -> None:
    """Run `spcomm model validate`."""
    options = parser().parse_args(words)
    if not re.fullmatch(r"[0-9a-f]{40}", options.commit):
        raise ModelError(
            f"{options.commit!r} is not the commit of the list, 40 hexadecimal digits; `git log -1 --format=%H LIST`"
            " prints it"
        )
    first, second = measured.read(options.first), measured.read(options.second)
    checked = validate(read_cases(options.list), options.commit, first, second)
    write = markdown if options.markdown else plain
    print("\n".join(write(table) for table in (summary(checked), worst(checked, options.worst))), end="")


def parser() -> ArgumentParser:
    result = ArgumentParser(
        "spcomm model validate",
        "spcomm model validate LIST --commit ID --first JSON... --second JSON... [options]",
        "Holds a third of the cases of a list out of a fit, by a hash of each case and of the commit of the list, and"
        " compares the predictions of the fit with what was measured.",
    )
    add = result.add_argument
    add("list", metavar="LIST", help="cases, a line each: operation, nodes, bytes, transport")
    add("--commit", required=True, metavar="ID", help="the commit in which the list came")
    add(
        "--first",
        required=True,
        nargs="+",
        metavar="JSON",
        help="the measurement that is fitted and predicted",
    )
    add(
        "--second",
        required=True,
        nargs="+",
        metavar="JSON",
        help="another one, whose spread stands beside errors",
    )
    add(
        "--worst",
        type=whole(1, MOST_SHOWN, "cases"),
        default=SHOWN,
        metavar="N",
        help=f"cases to show (default {SHOWN})",
    )
    add("--markdown", action="store_true", help="print tables for a page")
    return result


def summary(checked: Sequence[Checked]) -> list[list[str]]:
    """Return a table with a line for each operation and transport, nodes up to the cores and beyond them apart."""
    rows = [
        [
            "operation",
            "nodes",
            "cases",
            "median error, %",
            "worst, %",
            "median spread, %",
            "over the goal",
            "in the interval",
        ]
    ]
    for transport in TRANSPORTS:
        for crowded in (False, True):
            group = [c for c in checked if (c.case.transport, c.is_crowded) == (transport, crowded)]
            where = f"{transport}, {'more than cores' if crowded else 'a core each'}"
            for operation in sorted({c.case.operation for c in group}):
                rows.append(line(operation, where, [c for c in group if c.case.operation == operation]))
            if group:
                rows.append(line("all", where, group))
    rows.append(line("all", "all", checked))
    return rows


def line(name: str, where: str, group: Sequence[Checked]) -> list[str]:
    spreads = sorted(entry.spread for entry in group)
    return [
        name,
        where,
        str(len(group)),
        percent(median_error(group)),
        percent(max(abs(entry.error) for entry in group)),
        percent(spreads[len(spreads) // 2]),
        str(sum(abs(entry.error) > entry.limit for entry in group)),
        str(sum(entry.is_within_interval for entry in group)),
    ]


def worst(checked: Iterable[Checked], count: int) -> list[list[str]]:
    """Return a table of the cases with the largest errors."""
    rows = [["case", "predicted", "95 % within", "measured", "error, %", "spread, %"]]
    for entry in sorted(checked, key=lambda entry: -abs(entry.error))[:count]:
        times = [time_text(entry.predicted.value), within(entry.predicted), time_text(entry.measured)]
        rows.append([str(entry.case), *times, f"{100 * entry.error:+.0f}", percent(entry.spread)])
    return rows


def percent(share: float) -> str:
    return f"{100 * share:.0f}"


def plain(table: Sequence[Sequence[str]]) -> str:
    """Return aligned text."""
    return aligned(table, left=(0, 1), indent="")


def markdown(table: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [table[0], ["---"] * len(table[0]), *table[1:]]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
