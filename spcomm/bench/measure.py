# SPDX-License-Identifier: MIT
"""The rounds: every group of rows, every contender in turn, in another order each round.

Rows that need the same nodes share one start of the programs, so that a slow start does not use up the time. In a
round the contenders follow each other within seconds, so a longer disturbance of the machine affects them all.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from time import monotonic, monotonic_ns, perf_counter

from spcomm.bench import clusters, plain_c
from spcomm.bench.neighbours import Neighbours
from spcomm.bench.peers import MEET, PROGRAMS, Contender
from spcomm.bench.programs.driver import WARM_UP
from spcomm.bench.rows import MPI_C, Row
from spcomm.trace.errors import TraceError
from spcomm.trace.reader import read
from spcomm.trace.summary import summarize

TIMEOUT = 60.0  # seconds in which a start of the programs has to finish a row more; none needs a tenth of it
LAUNCH = "launch"
DIAGNOSE = "diagnose"
BALANCE = "balance"
PLAIN_C = "plain_c"
CLUSTER = "cluster"
# For estimates, in seconds: a box more, nodes for a notebook, a balanced program; the search for a batch size as a
# multiple.
BOX_S, CLUSTER_S, BALANCED_S, SEARCH = 0.02, 1.0, 0.5, 1.2


class ProgramFailed(Exception):
    """A contender's program failed; the text is one line with the reason."""


@dataclass
class Results:
    """`times[key][contender]` has one list of batch times, in seconds per operation, for each round.

    `failures` has the reason of each (key, contender) that failed when it was last tried; of those, `given_up` have
    failed twice in a row.
    """

    times: dict[str, dict[str, list[list[float]]]] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    given_up: set[tuple[str, str]] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)  # by key: why it cannot be measured here
    rounds: int = 0
    interrupted: bool = False
    others: float | None = None  # cores that other programs kept busy meanwhile
    planned_rounds: int = 0

    def add(self, key: str, contender: str, batches: list[float]) -> None:
        self.times.setdefault(key, {}).setdefault(contender, []).append(batches)
        self.failures.pop((key, contender), None)

    def fail(self, key: str, contender: str, reason: str) -> None:
        if (key, contender) in self.failures:
            self.given_up.add((key, contender))
        self.failures[key, contender] = reason

    def is_open(self, key: str, contender: str) -> bool:
        """Whether to try it: it can be measured here, and has not been given up."""
        return key not in self.skipped and (key, contender) not in self.given_up

    def is_to_repeat(self, key: str, contender: str) -> bool:
        return (key, contender) in self.failures and self.is_open(key, contender)


@dataclass(frozen=True)
class Plan:
    """The plan of a measurement: rows, contenders (spcomm first), rounds, the time for each work, and in total.

    `repetitions` of an operation make one sample; None: as many as fit into the time. A limit that `is_hard` ends the
    measurement even in its first round; otherwise that round is always whole.
    """

    rows: Sequence[Row]
    contenders: Sequence[Contender]
    rounds: int
    seconds: float
    limit: float
    repetitions: int | None = None
    is_hard: bool = False


def measure(plan: Plan, tell: Callable[[str, float], None]) -> Results:
    """Run the rounds. Stops early when another round would not fit into the limit, or at Ctrl-C.

    A hard limit also drops single starts: those of peers when the first round falls behind, so that each point of
    spcomm is measured once, and all when the time is up. A point that failed is tried once more: in the next round, or
    after the last one.

    `tell` gets a text and the share of the work that is done, as `cost_s` counts it.
    """
    results, begin, longest = Results(planned_rounds=plan.rounds), monotonic(), 0.0
    neighbours = Neighbours()
    groups = grouped(plan.rows)
    costs = [sum(cost_s(group, contender, plan) for contender in plan.contenders) for group in groups]
    whole = plan.rounds * sum(costs) or 1.0
    try:
        for number in range(plan.rounds):
            if number and monotonic() - begin + (0.0 if plan.is_hard else longest) > plan.limit:
                tell(f"stopped after {number} of {plan.rounds} rounds: the limit is {plan.limit:.0f} s", 1.0)
                break
            start = monotonic()
            for position, group in enumerate(groups):
                where = f"{group[0].title}" + (f" and {len(group) - 1} more" if len(group) > 1 else "")
                done = (number * sum(costs) + sum(costs[:position])) / whole
                tell(f"round {number + 1} of {plan.rounds}, {position + 1} of {len(groups)}: {where}", done)
                share = sum(costs[: position + 1]) / (sum(costs) or 1.0)
                peers_until = begin + plan.limit * (share if number == 0 else 1.0)
                budget = Budget(begin + plan.limit, peers_until) if plan.is_hard else Budget()
                one_group(group, turned(plan.contenders, number), plan, results, budget, results.is_open)
            longest = max(longest, monotonic() - start)
            results.rounds += 1
        if results.failures and monotonic() - begin < plan.limit:
            tell("once more: points that failed", 1.0)
            budget = Budget(begin + plan.limit, begin + plan.limit)
            for group in groups:
                one_group(group, plan.contenders, plan, results, budget, results.is_to_repeat)
    except KeyboardInterrupt:
        results.interrupted = True
    results.others = neighbours.cores()
    return results


@dataclass(frozen=True)
class Budget:
    """The times of `monotonic` at which a hard limit ends the starts of spcomm, and of its peers."""

    until: float = inf
    peers_until: float = inf

    def left_s(self, contender: Contender) -> float:
        return (self.until if contender.is_spcomm else self.peers_until) - monotonic()


def estimate(plan: Plan) -> tuple[int, float]:
    """Return the rounds that fit into the plan's limit, at least one, and the seconds that they take, about."""
    costs = (cost_s(group, contender, plan) for group in grouped(plan.rows) for contender in plan.contenders)
    one_round = sum(costs)
    rounds = max(1, min(plan.rounds, int(plan.limit / (one_round or 1.0))))
    return rounds, rounds * one_round


def cost_s(group: Sequence[Row], contender: Contender, plan: Plan) -> float:
    """Return what one start of the programs takes, about."""
    rows = taken_part(group, contender)
    if not rows:
        return 0.0
    first = rows[0]
    start = contender.start_s + contender.node_s * first.nodes + BOX_S * (first.boxes - 1)
    if first.work == LAUNCH:
        return start
    if first.work == DIAGNOSE:
        return first.parameters["runs"] * start
    if first.work == BALANCE:
        return start + BALANCED_S
    if first.work == CLUSTER:
        return CLUSTER_S
    own = max(row.parameters.get("seconds", 0.0) for row in rows)
    warm_ups = len(rows) if first.work == PLAIN_C else 1
    return start + warm_ups * WARM_UP + own + len(rows) * SEARCH * plan.seconds


def taken_part(group: Sequence[Row], contender: Contender) -> list[Row]:
    """Return the rows of a group that this contender can run."""
    return [] if contender.missing else [row for row in group if contender.can_run(row)]


def grouped(rows: Sequence[Row]) -> list[list[Row]]:
    """Return rows that one start of the programs can measure, in the order of their first row.

    A row that only differs in its environment follows the one it is compared with, within the same round.
    """
    groups: dict[object, list[Row]] = {}
    for row in rows:
        alone = row.key if row.work in (LAUNCH, DIAGNOSE, BALANCE) else None
        key = (
            row.program,
            row.dialect,
            row.nodes,
            row.computing,
            tuple(sorted(row.environment.items())),
            row.peers,
            row.boxes,
            row.direct,
            row.encrypted,
            row.traced,
            alone,
        )
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def turned(contenders: Sequence[Contender], number: int) -> list[Contender]:
    """Rotate the contenders: A B C, then B C A, then C A B."""
    shift = number % len(contenders)
    return [*contenders[shift:], *contenders[:shift]]


def one_group(
    group: Sequence[Row],
    contenders: Sequence[Contender],
    plan: Plan,
    results: Results,
    budget: Budget,
    is_wanted: Callable[[str, str], bool],
) -> None:
    """Measure the rows of one group with each contender, those that are wanted: by key and contender."""
    chosen = [
        (contender, [row for row in taken_part(group, contender) if is_wanted(row.key, contender.name)])
        for contender in contenders
    ]
    with computing(group[0].computing if any(rows for _, rows in chosen) else 0):
        for contender, rows in chosen:
            while rows and budget.left_s(contender) > 0:
                rows = rows_left(rows, contender, plan, results, budget.until)


def rows_left(
    rows: Sequence[Row], contender: Contender, plan: Plan, results: Results, until: float
) -> list[Row]:
    """Start the programs once. Return the rows after one that failed, which are to be measured by another start.

    A program that ends before it has measured anything cannot run the others either.
    """
    found: dict[str, list[float]] = {}
    try:
        one_start(rows, contender.suited(rows[0]), plan.seconds, plan.repetitions, until, found)
        return []
    except plain_c.CannotMeasureError as error:
        results.skipped |= {row.key: str(error) for row in rows}
        return []
    except ProgramFailed as error:
        if monotonic() >= until:
            return []
        failed, *others = [row for row in rows if row.key not in found]
        for row in [failed] if found else rows:
            results.fail(row.key, contender.name, str(error))
        return others if found else []
    finally:
        for key, batches in found.items():
            results.add(key, contender.name, batches)


def one_start(
    group: Sequence[Row],
    contender: Contender,
    seconds: float,
    repetitions: int | None = None,
    until: float = inf,
    found: dict[str, list[float]] | None = None,
) -> dict[str, list[float]]:
    """Start the contender's program once; return batch times by the rows' keys.

    They are added to `found` even if the program fails, or Ctrl-C ends it. `until` is the time of `monotonic` at which
    it must end.
    """
    found = {} if found is None else found
    nodes, environment = group[0].nodes, group[0].environment
    if group[0].work == LAUNCH:
        spent, output = run(contender, nodes, MEET, [], environment, until)
        if output.split() != [str(nodes)]:
            raise ProgramFailed(f"{nodes} nodes should have met, it said {output.strip()!r}")
        found[group[0].key] = [spent]
    elif group[0].work == PLAIN_C:
        name, orders = group[0].program, {row.key: row.parameters for row in group}
        with reasons(name):
            for key, batches in plain_c.measure(name, orders, seconds, lambda: patience_s(until)):
                found[key] = batches
    elif group[0].work == CLUSTER:
        with reasons("clusters.py"):
            orders = {row.key: row.parameters for row in group}
            found |= clusters.measure(orders, nodes, seconds, patience_s(until))
    elif group[0].work == DIAGNOSE:
        runs = group[0].parameters["runs"]
        found[group[0].key] = [one_deadlock(contender, nodes, environment) for _ in range(runs)]
    elif group[0].work == BALANCE:
        found[group[0].key] = [one_imbalance(contender, nodes, environment, until)]
    else:
        works(group, contender, seconds, repetitions, until, found)
    return found


def works(
    group: Sequence[Row],
    contender: Contender,
    seconds: float,
    repetitions: int | None,
    until: float,
    found: dict[str, list[float]],
) -> None:
    """Start a program that measures these rows, and add what it writes to `found`, even if it fails."""
    with tempfile.TemporaryDirectory(prefix="spcomm-bench-") as folder:
        program, path = group[0].program, Path(folder, "results.jsonl")
        path.touch()
        if group[0].dialect == MPI_C:
            program = compiled(program, folder, contender)
            orders = plain_c.words_of(group, repetitions)
        else:
            chosen = ("key", "work", "parameters")
            entries = [{name: getattr(row, name) for name in chosen} for row in group]
            orders = [json.dumps([entry | {"repetitions": repetitions} for entry in entries])]
        try:
            run(
                contender,
                group[0].nodes,
                program,
                [str(path), str(seconds), *orders],
                group[0].environment,
                until,
                path,
            )
        finally:
            for line in path.read_text(encoding="utf-8").splitlines():
                found |= json.loads(line)


def compiled(name: str, folder: str, contender: Contender) -> str:
    """Return the path of an MPI program in C; where it cannot be compiled for a peer, that peer has failed."""
    try:
        return str(plain_c.build(name, Path(folder), contender.compiler))
    except plain_c.CannotMeasureError as error:
        if contender.is_spcomm:
            raise
        raise ProgramFailed(str(error)) from error


def patience_s(until: float) -> float:
    """Return the seconds to wait for a program that has been started, or for its next row."""
    return max(0.0, min(TIMEOUT, until - monotonic()))


@contextmanager
def reasons(name: str) -> Iterator[None]:
    """Raise a failure of the block's program as `ProgramFailed`."""
    try:
        yield
    except subprocess.TimeoutExpired as error:
        raise ProgramFailed(f"{name}: not finished after {error.timeout:.0f} s") from error
    except subprocess.CalledProcessError as error:
        raise ProgramFailed(f"{name}: exit code {error.returncode}: {last_line(error.stderr)}") from error


def run(
    contender: Contender,
    nodes: int,
    program: str,
    arguments: list[str],
    environment: dict[str, str],
    until: float = inf,
    results: Path | None = None,
) -> tuple[float, str]:
    """Run a program to its end: return seconds from start to finish, and its output.

    It has `TIMEOUT` to end, or to write more `results`.
    """
    command = contender.start(nodes, program, arguments)
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        begin = perf_counter()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=os.environ | contender.environment | environment,
                start_new_session=True,
            )
        except OSError as error:
            raise ProgramFailed(f"cannot start {command[0]}: {error.strerror}") from error
        try:
            code = wait(process, until, results)
        finally:
            end(process)
        spent = perf_counter() - begin
        output.seek(0)
        errors.seek(0)
        if code != 0:
            raise ProgramFailed(f"exit code {code}: {last_line(errors.read())}")
        return spent, output.read()


def wait(process: subprocess.Popen, until: float, results: Path | None) -> int:
    """Return the exit code."""
    written = -1
    while (size := results.stat().st_size if results else 0) > written:
        written = size
        with suppress(subprocess.TimeoutExpired):
            return process.wait(patience_s(until))
    raise ProgramFailed(f"not finished after {TIMEOUT:.0f} s")


def one_deadlock(contender: Contender, nodes: int, environment: dict[str, str]) -> float:
    """Return seconds from the last node's time stamp until the launcher's report can be read."""
    with tempfile.NamedTemporaryFile(prefix="spcomm-bench-") as stamps:
        process = subprocess.Popen(
            contender.start(nodes, "deadlock", [stamps.name]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | contender.environment | environment,
            start_new_session=True,
        )
        watchdog = threading.Timer(TIMEOUT, end, [process])
        watchdog.start()
        try:
            errors = process.stderr or ()
            arrived = next((monotonic_ns() for line in errors if b"DEADLOCK" in line), None)
            for _ in errors:
                pass
            process.wait()
        finally:
            watchdog.cancel()
            end(process)
            if process.stderr:
                process.stderr.close()
        words = stamps.read()
    if arrived is None or len(words) != 8 * nodes:
        raise ProgramFailed(f"no report of the deadlock: exit code {process.returncode}")
    last = max(int.from_bytes(words[8 * i : 8 * i + 8], "little") for i in range(nodes))
    return (arrived - last) / 1e9


def one_imbalance(contender: Contender, nodes: int, environment: dict[str, str], until: float) -> float:
    """Return the load imbalance that the trace of a balanced program shows: 0.01 is one per cent."""
    with tempfile.TemporaryDirectory(prefix="spcomm-bench-") as folder:
        path = str(Path(folder, "trace.json"))
        traced = replace(contender, command=(*contender.command, "--trace", path))
        run(traced, nodes, "balanced", [], environment, until)
        try:
            imbalance = summarize(read(path)).imbalance
        except TraceError as error:
            raise ProgramFailed(str(error)) from error
        if imbalance is None:
            raise ProgramFailed("no node of the trace computes")
        return imbalance


def end(process: subprocess.Popen) -> None:
    """End a launcher that still runs; TERM lets it end its nodes."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if any(character.isalnum() for character in line)]
    return lines[-1][:200] if lines else "(it said nothing)"


@contextmanager
def computing(count: int) -> Iterator[None]:
    """Run that many busy processes during the block."""
    command = [sys.executable, str(PROGRAMS / "compute.py"), str(os.getpid())]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
