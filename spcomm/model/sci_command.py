# SPDX-License-Identifier: MIT
"""`spcomm model sci`: inputs, crossovers beside those that the thesis prints, and latencies of one size of system."""

import argparse
import math
import re
from collections.abc import Sequence

from spcomm.argument_parser import ArgumentParser
from spcomm.model import ModelError, optional, sci
from spcomm.model.sci import Components, Torus
from spcomm.text import aligned

MOST = 1e12  # of any number
EPILOG = """\
Without --nodes and --torus: the crossovers, the numbers of nodes from which one dimension more is faster. They are
shown as roots of the equations and rounded up to the next quarter of a node.
"""
REMARKS = """\
The multi-unicast total of N nodes is (N - 1) times the average latency, so both cross at the same N. The column that
the thesis prints cannot follow from its equations: with the enhanced switch it says 5, 9 and 18 where its averages
cross at 9, 45 and 232. Joining the totals of whole tori by straight lines gives 18.5, 196.6, 1955 and 8.4, 51.8, 236.8:
between 16 and 25 nodes the line of two dimensions lies above the curve. It explains in part why its numbers for the
current switch are larger, and not those for the enhanced one.
The printed averages were read off extrapolated curves and lie within a node or 1.4 % of the roots. For the last one
the rounding of an input is enough: with 6.67 ns in place of 7 ns for the propagation (a metre of cable at half the
speed of light) the root is 231.9.
"""


def main(words: Sequence[str]) -> None:
    """Run `spcomm model sci`."""
    options = parser().parse_args(words)
    components = Components(
        options.propagation,
        options.forwarding,
        options.switching,
        options.overhead,
        options.overhead_per_byte,
    )
    if options.hops and not options.torus:
        raise ModelError("--hops needs a torus to travel in, such as --torus 3x3 --hops 1,2")
    if options.figures:
        optional("matplotlib.figure")
    if options.figures or not (options.torus or options.nodes):
        optional("scipy.optimize")
    if options.torus or options.nodes:
        print(systems(options, components), end="")
    else:
        print(inputs(components), end="\n")
        print(crossovers(options, components), end="")
    if options.figures:
        from spcomm.model import sci_figures

        for path in sci_figures.draw(options.figures, components):
            print(path)


def parser() -> ArgumentParser:
    default = Components()
    result = ArgumentParser(
        "spcomm model sci",
        "spcomm model sci [options]",
        "Latency of SCI rings and tori by the equations of the thesis of D. M. Gonzalez on low-latency SCI systems"
        " (University of Florida, December 2000).",
        EPILOG,
    )
    costs = {
        "propagation": (default.propagation_ns, "along a link"),
        "forwarding": (default.forwarding_ns, "through a node on the way"),
        "switching": (default.switching_ns, "from one dimension to another; 335 is the enhanced system"),
        "overhead": (default.overhead_ns, "at each end, of 64 bytes"),
        "overhead-per-byte": (default.overhead_per_byte_ns, "for each byte more"),
    }
    result.add_rows(
        ("--nodes", "N", number, "latencies of N nodes in 1 to 4 dimensions"),
        ("--torus", "AxB", torus, "latencies of one torus, such as 16 (a ring), 4x4 or 8x8x2"),
        ("--hops", "H,H", hops, "with --torus: a message over so many links in each dimension"),
        ("--size", "BYTES", number, "bytes of a message (default 64)"),
        ("--bidirectional", None, None, "packets take the shorter way around a ring"),
        ("--load", "SHARE", number,
         "contention: the share of time in which each node puts packets onto its links (default 0)"),
        *((f"--{name}", "NS", number, f"{text} (default {value:g})") for name, (value, text) in costs.items()),
        ("--figures", "FOLDER", str, "draw figures 12 to 15 of the thesis into FOLDER, as PNG"),
    )  # fmt: skip
    result.set_defaults(size=64, load=0.0)
    result.set_defaults(**{name.replace("-", "_"): value for name, (value, _text) in costs.items()})
    return result


def number(text: str) -> float:
    try:
        value = float(text) if text.isascii() else math.nan
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {MOST:.0e}")
    return value


def torus(text: str) -> tuple[float, ...]:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?(x[0-9]+(\.[0-9]+)?)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a torus such as 16, 4x4 or 8x8x2")
    return tuple(number(part) for part in text.split("x"))


def hops(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]{1,20}(,[0-9]{1,20})*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers of hops such as 2,1")
    return tuple(int(part) for part in text.split(","))


def inputs(components: Components) -> str:
    """Return the inputs of the equations, Table 1 of the thesis."""
    overhead = f"{components.overhead_ns:g} + {components.overhead_per_byte_ns:g} (m - 64)"
    rows = [
        ["component", "ns"],
        ["propagation", f"{components.propagation_ns:g}"],
        ["forwarding", f"{components.forwarding_ns:g}"],
        ["switching", f"{components.switching_ns:g}"],
        ["overhead of m bytes, each end", overhead],
    ]
    return aligned(rows, indent="")


def crossovers(options: argparse.Namespace, components: Components) -> str:
    """Return the table of crossovers beside Table 2 of the thesis, where that has this switching delay."""
    average = sci.PRINTED_AVERAGE.get(components.switching_ns)
    multi_unicast = sci.PRINTED_MULTI_UNICAST.get(components.switching_ns)
    head = ["crossover", "root", "in quarters"]
    rows = [[*head, "thesis: average", "thesis: multi-unicast"] if average else head]
    for dimensions in range(1, sci.MOST_DIMENSIONS):
        found = sci.crossover(dimensions, components, options.size, options.bidirectional, options.load)
        row = [f"{dimensions}D to {dimensions + 1}D"]
        row += ["none", "none"] if found is None else [f"{found:.2f}", f"{sci.on_quarters(found):.2f}"]
        if average and multi_unicast:
            row += [str(average[dimensions - 1]), str(multi_unicast[dimensions - 1])]
        rows.append(row)
    default = not options.bidirectional and not options.load
    return aligned(rows, indent="") + ("\n" + REMARKS if average and default else "")


def systems(options: argparse.Namespace, components: Components) -> str:
    """Return the latencies of the tori asked for, a line each."""
    if options.torus:
        shapes = [Torus(options.torus, options.bidirectional)]
    else:
        shapes = [
            Torus.of(options.nodes, d, options.bidirectional) for d in range(1, sci.MOST_DIMENSIONS + 1)
        ]
    rows = [["torus", "nodes", "hops", "switches", "average, µs", "multi-unicast, µs", "links busy, %"]]
    for shape in shapes:
        row = [
            short(shape),
            f"{shape.size:g}",
            f"{shape.average_hops():.2f}",
            f"{shape.average_switches():.2f}",
        ]
        busy = shape.utilisation(options.load)
        if busy < 1 or options.torus:
            average = shape.average_latency(components, options.size, options.load)
            total = shape.multi_unicast(components, options.size, options.load)
            row += [f"{average / 1000:.3f}", f"{total / 1000:.1f}", f"{100 * busy:.0f}"]
        else:
            row += ["saturated", "saturated", f"{100 * busy:.0f}"]
        rows.append(row)
    text = aligned(rows, indent="")
    if options.hops:
        request = shapes[0].point_to_point(options.hops, components, options.size, options.load)
        response = shapes[0].response(options.hops, components, options.size)
        text += f"\nA message over {','.join(map(str, options.hops))} hops: request {request / 1000:.3f} µs,"
        text += f" response {response / 1000:.3f} µs.\n"
    return text


def short(shape: Torus) -> str:
    """Format as in ``--torus``, with two places where a number is not whole."""
    return "x".join(f"{n:g}" if n == int(n) else f"{n:.2f}" for n in shape.nodes)
