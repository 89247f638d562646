# SPDX-License-Identifier: MIT
"""`spcomm model predict`: a line for each number of nodes and each size, with the interval of each prediction."""

import argparse
from collections.abc import Sequence

from spcomm.argument_parser import ArgumentParser
from spcomm.model import loggp, terms
from spcomm.model.loggp import WIDEST, Estimate
from spcomm.model.measured import Case
from spcomm.model.predict import ALGORITHMS, predict, predict_cluster
from spcomm.model.settings import time_text
from spcomm.text import aligned, size_bytes

MOST = 1 << 40
NOTE = """\
Beyond the nodes or the bytes that were measured the terms are extrapolated: no measurement has checked them there.
"""
UNKNOWN_NOTE = f"""\
Unknown: what was measured does not tell the time within a factor of {WIDEST:g}. Measure more numbers of nodes and
sizes: `spcomm bench sweep paths --nodes 2,3,4,6,8,12,16 --json FILE`, then fit them.
"""
CLUSTER_NOTE = """\
By LogGP, with a core for each node and no contention: a cluster that nobody has measured. The interval has all
parameters at their lower and at their upper ends.
"""


def main(words: Sequence[str]) -> None:
    """Run `spcomm model predict`."""
    options = parser().parse_args(words)
    fit = loggp.read(options.fit)
    terms.of(options.operation)
    sizes = options.size if terms.of(options.operation).has_size else [0]
    if options.operation == "global_sum":
        sizes = [8]
    rows = [["nodes", "bytes", "time", "95 % within", ""]]
    extrapolated = unknown = False
    for n in options.nodes:
        for size in sizes:
            case = Case(options.operation, n, size, options.transport)
            outside = False
            if options.cluster:
                time = predict_cluster(fit.of(options.transport), case, options.cluster)
            else:
                found = predict(fit, case)
                time, outside = found.time_ns, found.is_extrapolated
            extrapolated |= outside
            unknown |= not time.is_known
            remark = "extrapolated" if outside else ""
            rows.append([str(n), str(size), time_text(time.value), within(time), remark])
    print(aligned(rows, left=(4,), indent=""), end="")
    for is_true, note in (
        (options.cluster, CLUSTER_NOTE),
        (extrapolated, NOTE),
        (unknown, UNKNOWN_NOTE),
    ):
        if is_true:
            print(f"\n{note}", end="")


def within(time: Estimate) -> str:
    """Format the interval of a time.

    >>> within(Estimate(100, 80, 120)), within(Estimate(100, 0, 1e9))
    ('80 ns to 120 ns', 'unknown')
    """
    return f"{time_text(time.low)} to {time_text(time.high)}" if time.is_known else "unknown"


def parser() -> ArgumentParser:
    result = ArgumentParser(
        "spcomm model predict",
        "spcomm model predict FIT.json OPERATION [options]",
        "Predicts an operation at any number of nodes from a file of `spcomm model fit --out FILE`.",
        f"Operations: {', '.join(terms.OPERATIONS)}",
    )
    result.add_argument("fit", metavar="FIT.json", help="a fit")
    result.add_argument("operation", metavar="OPERATION", help="such as barrier; a list stands below")
    result.add_rows(
        ("--nodes", "N,N", numbers, "numbers of nodes (default 2)"),
        ("--size", "B,B", numbers, "bytes of a message, such as 8,4K,1M (default 8)"),
        ("--transport", None, loggp.TRANSPORTS, "shared memory, or boxes of one node each over TCP (default memory)"),
        ("--cluster", None, ALGORITHMS,
         "a core for each node: by the algorithms of MPI (tree), or through one server"),
    )  # fmt: skip
    result.set_defaults(nodes=[2], size=[8], transport=loggp.MEMORY)
    return result


def numbers(text: str) -> list[int]:
    parts = text.split(",")
    found = [number for part in parts if (number := size_bytes(part)) is not None and number <= MOST]
    if len(found) < len(parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers such as 2,8,64 or 8,4K,1M")
    return found
