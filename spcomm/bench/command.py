# SPDX-License-Identifier: MIT
"""The command line of `spcomm bench`."""

import argparse
import importlib
import json
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from spcomm.argument_parser import ArgumentParser, one_of, whole
from spcomm.bench import compare, peers
from spcomm.bench.cases import BENCHMARKS, SUMMARIES, Benchmark, sweep
from spcomm.bench.measure import Plan, Results, estimate, measure
from spcomm.bench.progress import Progress, about
from spcomm.bench.report import Report
from spcomm.bench.results_file import ResultsFile, ResultsFileError, load
from spcomm.bench.rows import Row, Sweep
from spcomm.bench.statistics import LEAST_ROUNDS
from spcomm.text import counted, size_bytes, whole_number

ROUNDS, SECONDS, LIMIT = 7, 0.25, 330.0
QUICK_ROUNDS, QUICK_SECONDS, QUICK_LIMIT = 3, 0.06, 50.0
MOST_NODES = 1024
FIGURES = "figures"  # the sub-command, which has options of its own
SWEEP_CHOICES = ("operations", "sizes", "transports", "buffers")
CHOICES = ("names", "nodes", *SWEEP_CHOICES, "repetitions")  # what decides on the measurements


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `spcomm bench`. Return the exit code: 1 if a program failed, never because one was slow."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == [FIGURES]:
        return importlib.import_module("spcomm.bench.figures_command").main(words[1:])
    arguments_parser = parser()
    options = arguments_parser.parse_args(words)
    chosen = choice(options)
    if any(chosen[name] for name in SWEEP_CHOICES) and "sweep" not in options.names:
        arguments_parser.error(
            "--operations, --sizes, --transports and --buffers choose what `spcomm bench sweep` measures"
        )
    if options.compare and not any(chosen.values()):
        chosen = choice_of(options.compare)
    rows = chosen_rows(chosen["names"], chosen["nodes"], Sweep(*(chosen[name] for name in SWEEP_CHOICES)))
    contenders = [peers.spcomm(), *(peers.checked(peers.PEERS[name]()) for name in options.peers)]
    plan = Plan(
        rows,
        contenders,
        rounds=options.rounds or default_rounds(options),
        seconds=QUICK_SECONDS if options.quick else SECONDS,
        limit=QUICK_LIMIT if options.quick else LIMIT,
        repetitions=chosen["repetitions"],
    )
    signal.signal(signal.SIGTERM, interrupt)
    results = run(plan)
    report = Report(rows, contenders, results, chosen, options.targets)
    print(report.text())
    found = report.json()
    if options.compare:
        print("", compare.text(options.compare, found, {row.key: row.title for row in rows}), sep="\n")
    if options.json:
        json.dump(found, options.json, indent=1)
        options.json.close()
    if results.interrupted:
        return 130
    return 1 if results.failures else 0


def choice(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in CHOICES}


def choice_of(old: ResultsFile) -> dict[str, Any]:
    """Return the choice of an earlier measurement, checked as if it stood on the command line."""
    words = []
    for name in (*CHOICES[1:], CHOICES[0]):
        found = old.chosen.get(name)
        values = [
            str(value) for value in (found if isinstance(found, list) else [found]) if value is not None
        ]
        if values:
            words += ["--", *values] if name == "names" else [f"--{name}={','.join(values)}"]
    repeated = parser()
    repeated.prog += f" --compare {old.path}"
    return choice(repeated.parse_args(words))


def run(plan: Plan) -> Results:
    """Measure, with progress; first say what it takes."""
    rounds, expected = estimate(plan)
    parts = [
        counted(len(plan.rows), "row"),
        counted(sum(not contender.missing for contender in plan.contenders), "contender"),
        counted(rounds, "round"),
    ]
    most = f" Measuring takes {about(plan.limit)} at most." if plan.is_hard else ""
    print(f"About {about(expected)}: {', '.join(parts)}.{most} Ctrl-C ends it early.", file=sys.stderr)
    progress = Progress(expected)
    try:
        return measure(plan, progress)
    finally:
        progress.clear()


def default_rounds(options: argparse.Namespace) -> int:
    wanted = QUICK_ROUNDS if options.quick else ROUNDS
    return max(wanted, LEAST_ROUNDS + 1) if options.compare else wanted


def chosen_rows(
    names: Sequence[str], nodes: tuple[int, ...] | None, chosen: Sweep | None = None
) -> list[Row]:
    """Return the rows of the benchmarks named, at the node counts given or at each benchmark's own."""
    whole = not names or "all" in names
    wanted = [one for name, one in BENCHMARKS.items() if name in names or (whole and not one.is_named)]
    return [row for one in wanted for row in rows_at(one, nodes or one.nodes, chosen)]


def rows_at(benchmark: Benchmark, nodes: tuple[int, ...], chosen: Sweep | None = None) -> list[Row]:
    """Return the rows of a benchmark, none at node counts with which it makes no sense."""
    fitting = tuple(n for n in nodes if n >= benchmark.least)
    if not fitting:
        return []
    return benchmark.rows(fitting, *([chosen] if benchmark.rows is sweep.rows else []))


def parser() -> ArgumentParser:
    rows = list(SUMMARIES.items())
    rows.append(("all", "all of them but boxes_many, mpi, paths and sweep, in one table (default)"))
    rows.append((FIGURES, f"redraw the papers' figures; spcomm bench {FIGURES} --help has the options"))
    result = ArgumentParser(
        "spcomm bench",
        "spcomm bench [BENCHMARK...] [options]",
        "Measures spcomm beside its peers, such as mpi4py on Open MPI and on MPICH, in the same run.",
        f"The peers come with: {peers.INSTALL}",
        completed=rows,
    )
    result.sections.append(("Benchmarks:", rows))
    result.add_argument(
        "names",
        nargs="*",
        metavar="BENCHMARK",
        type=one_of("benchmark", [*BENCHMARKS, "all"]),
        help="what to measure",
    )
    sweeps = (
        ("operations", list(sweep.OPERATIONS), "all"),
        ("transports", sweep.TRANSPORTS, "memory"),
        ("buffers", sweep.BUFFERS, "hot"),
    )
    known, default = ", ".join(peers.PEERS), ",".join(peers.MPIS)
    result.add_rows(
        ("--nodes", "N,N", node_counts, "numbers of nodes, such as 2,8,32"),
        ("--json", "FILE", new_file, "also write everything that was measured to FILE"),
        ("--compare", "FILE", results_file,
         "compare with an earlier --json; without a choice of your own, measure what it has"),
        ("--targets", None, None, "also show what the project aims at, and whether it is reached"),
        ("--quick", None, None, "all in about a minute, and noisier"),
        ("--rounds", "N", whole(1, 1000, "rounds"), f"rounds (default: {ROUNDS}; quick: {QUICK_ROUNDS})"),
        ("--repetitions", "N", whole(1, 1_000_000, "repetitions"),
         "operations in each sample (default: as many as fit into its time)"),
        *((f"--{name}", "NAMES", several(name.removesuffix("s"), names), f"sweep: {', '.join(names)} (default: {most})")
          for name, names, most in sweeps),
        ("--sizes", "B,B", sizes, "sweep: sizes of a message, such as 8,1K,1M"),
        ("--peers", "NAMES", peer_names, f"which peers, separated by commas: {known}, or none (default: {default})"),
    )  # fmt: skip
    result.set_defaults(operations=(), transports=(), buffers=(), sizes=(), peers=list(peers.MPIS))
    return result


def node_counts(text: str) -> tuple[int, ...]:
    counts = [whole_number(part.strip()) or 0 for part in text.split(",")]
    if not all(2 <= count <= MOST_NODES for count in counts):
        message = f"{text!r} is not a list of node counts from 2 to {MOST_NODES}, such as 2,8,32"
        raise argparse.ArgumentTypeError(message)
    return tuple(dict.fromkeys(counts))


def sizes(text: str) -> tuple[int, ...]:
    values = [size_bytes(part.strip()) or 0 for part in text.split(",")]
    if not all(1 <= value <= sweep.LARGEST for value in values):
        message = f"{text!r} is not a list of sizes from 1 byte to 64M, such as 8,1K,1M"
        raise argparse.ArgumentTypeError(message)
    return tuple(dict.fromkeys(values))


def several(kind: str, names: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def check(text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one_of(kind, names)(part.strip()) for part in text.split(",")))

    return check


def new_file(text: str) -> TextIO:
    """Open the file before anything is measured: a wrong name must not cost minutes."""
    try:
        return open(text, "w", encoding="utf-8")
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write {text!r}: {error.strerror}") from error


def results_file(text: str) -> ResultsFile:
    try:
        return load(text)
    except ResultsFileError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def peer_names(text: str) -> list[str]:
    if text == "none":
        return []
    return [one_of("peer", list(peers.PEERS))(part.strip()) for part in text.split(",")]


def interrupt(*_: object) -> None:
    """Have TERM end the running program and show the results so far, as Ctrl-C does."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
