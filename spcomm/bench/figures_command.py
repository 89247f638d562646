# SPDX-License-Identifier: MIT
"""The command line of `spcomm bench figures`."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from spcomm.argument_parser import ArgumentParser, whole
from spcomm.bench import command, figures, peers, plot
from spcomm.bench.figures import DEFAULT, FIGURES, FULL, Extent
from spcomm.bench.measure import Plan
from spcomm.bench.report import Report
from spcomm.bench.results_file import ResultsFile, load

FOLDER = "spcomm-figures"
RESULTS = "measurements.json"
INSTALL = "python -m pip install 'spcomm[model]'"


def main(arguments: Sequence[str]) -> int:
    """Run `spcomm bench figures`; return the exit code."""
    options = parser().parse_args(arguments)
    if find_spec("matplotlib") is None:
        print(f"spcomm bench figures: it draws with matplotlib: {INSTALL}", file=sys.stderr)
        return 125
    code, found = 0, vars(options)["from"]
    try:
        if found is None:
            extent = FULL if options.full else DEFAULT
            extent = replace(extent, rounds=options.rounds or extent.rounds)
            code, found = measured(extent, options.out / RESULTS)
        if found is not None:
            print(f"{len(FIGURES)} figures: {plot.write(options.out, FIGURES, found)}")
    except OSError as error:
        name = error.filename or options.out
        print(f"spcomm bench figures: cannot write {str(name)!r}: {error.strerror}", file=sys.stderr)
        return 1
    return code


def measured(extent: Extent, path: Path) -> tuple[int, ResultsFile | None]:
    """Measure, and write what was found; return the exit code, and None if there is nothing to draw.

    Where a peer fails, its points are missing in the figures, which are still those of spcomm.
    """
    wanted = figures.rows(extent)
    contenders = [peers.spcomm(), *(peers.checked(make()) for make in peers.PEERS.values())]
    plan = Plan(wanted, contenders, extent.rounds, extent.seconds, extent.limit, is_hard=True)
    signal.signal(signal.SIGTERM, command.interrupt)
    results = command.run(plan)
    if not results.times:
        end = "interrupted" if results.interrupted else "ended"
        print(f"spcomm bench figures: {end} before anything was measured", file=sys.stderr)
        return 130 if results.interrupted else 1, None
    report = Report(wanted, contenders, results, {"names": [command.FIGURES]})
    path.write_text(json.dumps(report.json(), indent=1), encoding="utf-8")
    print(*report.notes(), sep="\n")
    lacking = any(name == contenders[0].name for _key, name in results.failures)
    return (130 if results.interrupted else 1 if lacking else 0), load(path)


def parser() -> ArgumentParser:
    result = ArgumentParser(
        "spcomm bench figures",
        "spcomm bench figures [options]",
        "Redraws the papers' figures on this machine, with the papers' own numbers beside it.",
        "Writes PNGs and a page, index.html, that shows them. The default takes three minutes at most.",
    )
    result.add_rows(
        ("--full", None, None, "all sizes and node counts: an hour or so"),
        ("--rounds", "N", whole(1, 1000, "rounds"),
         f"rounds (default: {DEFAULT.rounds}; full: {FULL.rounds}), as far as the time allows"),
        ("--out", "DIR", new_folder, f"where to write (default: {FOLDER})"),
        ("--from", "FILE", command.results_file,
         f"draw an earlier measurement, such as {FOLDER}/{RESULTS}, and measure nothing"),
    )  # fmt: skip
    result.set_defaults(out=FOLDER)
    return result


def new_folder(text: str) -> Path:
    """Make the folder before anything is measured: a wrong name must not cost minutes."""
    try:
        Path(text).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot make {text!r}: {error.strerror}") from error
    if not os.access(text, os.W_OK):
        raise argparse.ArgumentTypeError(f"cannot write to {text!r}: permission denied")
    return Path(text)
