# SPDX-License-Identifier: MIT
"""`spcomm model simulate`: the command line, its texts and its picture."""

import argparse
import math
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from spcomm.argument_parser import ArgumentParser
from spcomm.model import ModelError, loggp, optional, settings
from spcomm.model.sci import text_of
from spcomm.model.sci_command import torus
from spcomm.model.settings import time_text
from spcomm.model.simulate import ALGORITHMS, DIRECT, Case, Costs, Noise, Result, Scaling, scaling, simulate
from spcomm.text import aligned, counted

EPILOG = """\
Costs and their defaults, in nanoseconds: {costs}

Examples:

  spcomm model simulate barrier --nodes 1000000 --algorithm dissemination
  spcomm model simulate neighbors --torus 1000x1000 --rounds 10
  spcomm model simulate all-to-all --nodes 512 --network servers --radix 8 --bytes 1024
  spcomm model simulate barrier --nodes 16384 --scaling --png barrier.png
"""
_NAMES = {entry.name.removesuffix("_ns").replace("_", "-"): entry.name for entry in fields(Costs)}


def main(words: Sequence[str]) -> None:
    """Run `spcomm model simulate`."""
    options = parser().parse_args(words)
    if options.measure_noise:
        found = Noise.measure()
        found.write(options.measure_noise)
        print(noise_text(found), end="")
        return
    if options.operation is None:
        raise ModelError(f"which operation? There are: {', '.join(ALGORITHMS)}")
    if options.png and not options.scaling:
        raise ModelError("--png draws a comparison; add --scaling")
    if options.png:
        optional("matplotlib.figure")
    costs, noise = costs_of(options), Noise.read(options.noise) if options.noise else None
    case = case_of(options)
    if not options.scaling:
        print(result_text(simulate(case, costs, noise)), end="")
        return
    compared = scaling(case, costs, noise)
    print(scaling_text(case, compared), end="")
    if options.png:
        draw(case, compared, options.png)
        print(f"wrote {options.png}")


def parser() -> ArgumentParser:
    defaults = ", ".join(f"{name}={getattr(Costs(), entry):g}" for name, entry in _NAMES.items())
    result = ArgumentParser(
        "spcomm model simulate",
        "spcomm model simulate OPERATION [options]",
        "Simulates an operation of many nodes, message by message.",
        EPILOG.format(costs=defaults),
    )
    result.add_argument("operation", nargs="?", metavar="OPERATION", help=f"one of {', '.join(ALGORITHMS)}")
    result.add_rows(
        ("--nodes", "N", integer, "how many nodes (default 1024, or those of --torus)"),
        ("--torus", "AxB", torus,
         "of neighbors: both along each dimension of a torus such as 1000x1000, up to 4 (default: a ring)"),
        ("--algorithm", "A", str,
         "server, tree, dissemination, binary-swap, ring (default: the server's where there is one, else tree)"),
        ("--network", None, ("server", "servers", "direct"),
         "one server, a tree of servers, or a link between any two nodes (default: direct, and with --algorithm server "
         "one server)"),
        ("--radix", "R", integer, "nodes of each server, and servers of a server above (default 16)"),
        ("--bytes", "B", integer, "of a message, or of an array that is reduced (default 8)"),
        ("--rounds", "N", integer, "how often; of unbalanced: messages of each node (default 1)"),
        ("--fanout", "N", integer, "of the tree of a multicast (default 2)"),
        ("--hot", "%", integer, "of unbalanced: percent of messages to node 0 (default 10)"),
        ("--seed", "N", integer, "of random destinations and of noise (default 0)"),
        ("--fit", "FILE", str, "costs of messages that `spcomm model fit` has found"),
        ("--transport", None, loggp.TRANSPORTS, "with --fit (default tcp)"),
        ("--costs", "NAME=TIME,…", str, "costs one by one, as in latency=20us,gap=1us"),
        ("--noise", "FILE", str, "measured noise for each piece of work"),
        ("--measure-noise", "FILE", str, "measure the noise of this machine's cores, and write it"),
        ("--scaling", None, None, "2, 4, 8, … up to N nodes, over all networks: which one is fastest?"),
        ("--png", "FILE", str, "with --scaling: draw it; FILE may also end in .svg or .pdf"),
    )  # fmt: skip
    result.set_defaults(algorithm="", bytes=8, rounds=1, fanout=2, hot=10, seed=0, transport=loggp.TCP)
    return result


def integer(text: str) -> int:
    if not re.fullmatch("-?[0-9]{1,20}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def case_of(options: argparse.Namespace) -> Case:
    """Make a case of the options; raise `ModelError` for one that cannot be."""
    shape = tuple(int(length) for length in options.torus or ())
    if shape != (options.torus or ()):
        raise ModelError(f"--torus {text_of(options.torus)}: simulated nodes are whole")
    nodes = options.nodes if options.nodes is not None else math.prod(shape) if shape else 1024
    network = options.network or ("server" if options.algorithm == "server" or options.scaling else "direct")
    if options.radix is not None:
        if options.network not in (None, "servers"):
            raise ModelError(f"--radix is about a tree of servers, not about --network {network}")
        network = "servers"
    radix = {"direct": DIRECT, "server": max(2, nodes), "servers": 16}[network]
    return Case(
        options.operation,
        nodes,
        options.algorithm,
        radix if options.radix is None else checked_radix(options.radix),
        options.rounds,
        options.bytes,
        options.fanout,
        options.hot,
        options.seed,
        shape,
    )


def checked_radix(radix: int) -> int:
    """Return a radix of the command line; 0 means direct links only inside."""
    if radix < 2:
        raise ModelError(
            f"a tree of servers with radix {radix} has no end: each server needs at least 2 below it"
        )
    return radix


def costs_of(options: argparse.Namespace) -> Costs:
    """Return the costs: the defaults, then a fit, then single ones."""
    costs = Costs.of_fit(loggp.read(options.fit).of(options.transport)) if options.fit else Costs()
    if options.costs:
        given = settings.parse(options.costs, dict.fromkeys(_NAMES, settings.TIME), "--costs")
        costs = replace(costs, **{_NAMES[name]: value for name, value in given.items()})
    return costs


def noise_text(noise: Noise) -> str:
    """Describe what was measured, a line for each series."""
    rows = [["core", "median", "99 %", "99.99 %", "longest"]]
    for number, series in enumerate(noise.series):
        found = sorted(series)
        places = (0.5, 0.99, 0.9999, 1.0)
        at = [found[min(len(found) - 1, int(place * len(found)))] for place in places]
        rows.append([str(number), *map(time_text, at)])
    head = f"{counted(len(noise.series[0]), 'piece')} of work of 2 µs: time beyond the shortest\n"
    return head + aligned(rows)


def result_text(found: Result) -> str:
    """Describe one simulation."""
    case = found.case
    rate = found.events / found.seconds / 1e6 if found.seconds else 0.0
    rows = [
        ("time", time_text(found.time_ns), "until the last node is done"),
        ("mean", time_text(found.mean_ns), "until a node is done"),
        ("messages", f"{found.messages:,}", "each hop counts"),
        ("events", f"{found.events:,}", f"in {found.seconds:.2f} s, {rate:.1f} million per second"),
    ]
    if found.servers:
        busy = f"the busiest works {100 * found.busy:.0f} % of the time"
        rows.insert(2, ("servers", f"{found.servers:,}", busy))
    shape = f" in a torus of {text_of(case.torus)}" if case.torus else ""
    head = (
        f"{case.operation} of {counted(case.nodes, 'node')}{shape}, {case.algorithm}, over {case.network}\n"
    )
    return head + aligned(rows, left=(0, 2))


def scaling_text(case: Case, found: Scaling) -> str:
    """Describe a comparison: a table, and the answers."""
    rows = [["nodes", *found.times_ns]]
    for at, nodes in enumerate(found.nodes):
        row = [times[at] for times in found.times_ns.values()]
        rows.append([str(nodes), *("-" if ns is None else time_text(ns) for ns in row)])
    lines = [f"{case.operation} of {case.bytes} bytes, until the last node is done\n", aligned(rows)]
    lines += [f"{text}\n" for text in answers(found)]
    return "".join([*lines, f"{found.events:,} events\n"])


def best_radix(found: Scaling, at: int) -> "str | None":
    """Return the fastest tree of servers for the number of nodes at this place, as it is named in the table."""
    trees = {name: times[at] for name, times in found.times_ns.items() if name.startswith("radix")}
    known = {name: ns for name, ns in trees.items() if ns is not None}
    return min(known, key=lambda name: known[name]) if known else None


def answers(found: Scaling) -> "list[str]":
    """Return a sentence for each question."""
    most = found.nodes[-1]
    sentences = []
    if found.half_busy is None:
        sentences.append(
            f"The processor of the single server works less than half of the time, up to {most} nodes."
        )
    else:
        sentences.append(
            f"From {found.half_busy} nodes on the processor of the single server works at least half of the time."
        )
    if found.tree_wins is None:
        sentences.append(f"One server is faster than any tree of servers, up to {most} nodes.")
    else:
        sentences.append(
            f"From {found.tree_wins} nodes on it is the bottleneck: a tree of servers is faster."
        )
    best = best_radix(found, len(found.nodes) - 1)
    if best is not None:
        sentences.append(f"At {most} nodes the best tree of servers has {best}.")
    if found.direct_wins is None:
        sentences.append(f"Servers are faster than MPI's algorithms over direct links at {most} nodes.")
    else:
        direct = {name: times[-1] for name, times in found.times_ns.items() if name.endswith("direct")}
        known = {name: ns for name, ns in direct.items() if ns is not None}
        name = min(known, key=lambda one: known[one]).removesuffix(", direct")
        sentences.append(
            f"From {found.direct_wins} nodes on MPI's algorithms over direct links are faster than any servers; at "
            f"{most} nodes the fastest is {name}."
        )
    return sentences


def draw(case: Case, found: Scaling, path: str) -> None:
    """Draw a comparison: a line for each network and algorithm, and the places of the answers."""
    figure: Any = optional("matplotlib.figure").Figure(figsize=(8.0, 5.5), dpi=150, layout="constrained")
    axes = figure.subplots()
    best = best_radix(found, len(found.nodes) - 1)
    direct_colors = iter(("#1b7f5c", "#7fbf3f", "#2f6db0"))
    for name, times in found.times_ns.items():
        shown = [(n, ns / 1e3) for n, ns in zip(found.nodes, times, strict=True) if ns is not None]
        style: dict[str, Any] = {"color": "#bbbbbb", "lw": 1.0}
        if name == "one server":
            style = {"color": "#d55e00", "lw": 2.2, "marker": "s"}
        elif name.endswith("direct"):
            style = {"color": next(direct_colors), "lw": 2.0, "marker": "o"}
        elif name == best:
            style = {"color": "#8e44ad", "lw": 2.2, "marker": "^"}
        axes.plot(*zip(*shown, strict=True), label=name, markersize=3.5, **style)
        if style["color"] == "#bbbbbb":
            axes.annotate(name.rpartition(" ")[2], shown[-1], fontsize=7, color="#888888")
    places = (
        ("a tree of servers is faster", found.tree_wins),
        ("direct links are faster", found.direct_wins),
    )
    for place, (text, nodes) in enumerate(places):
        if nodes is not None:
            axes.axvline(nodes, color="#3a3a3a", lw=0.8, ls=":")
            axes.annotate(
                f" {nodes}: {text}",
                (nodes, 0.97 - 0.05 * place),
                xycoords=("data", "axes fraction"),
                fontsize=8,
            )
    axes.set(xscale="log", yscale="log", xlabel="nodes", ylabel="µs until the last node is done")
    axes.set_title(f"{case.operation} of {case.bytes} bytes: simulated, {found.events:,} events", fontsize=10)
    axes.legend(fontsize=7, frameon=False)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot write {path!r}: {getattr(error, 'strerror', None) or error}") from error
