# SPDX-License-Identifier: MIT
"""`spcomm model fit`: parameters with their intervals as text, the file of the fit, and pictures of the residuals."""

from collections.abc import Sequence

from spcomm.argument_parser import ArgumentParser
from spcomm.model import components, measured, optional
from spcomm.model.fit import fit
from spcomm.model.loggp import PARAMETERS, Estimate, Fit
from spcomm.model.settings import time_text
from spcomm.text import aligned

NOTHING = 1e-4  # share of the largest number of an interval


def main(words: Sequence[str]) -> None:
    """Run `spcomm model fit`."""
    options = parser().parse_args(words)
    if options.figures:
        optional("matplotlib.figure")
    found = measured.read(options.files)
    if options.components:
        print(components_text(components.find(found)), end="")
        return
    fitted = fit(found)
    print(text(fitted), end="")
    if options.out:
        fitted.write(options.out)
    if options.figures:
        from spcomm.model import fit_figures

        for path in fit_figures.draw(options.figures, found, fitted):
            print(path)


def parser() -> ArgumentParser:
    result = ArgumentParser(
        "spcomm model fit",
        "spcomm model fit BENCH.json... [options]",
        "Fits LogGP and the terms of operations to files of `spcomm bench sweep paths --json FILE`. Rounds of several"
        " files are put together.",
    )
    result.add_argument("files", nargs="+", metavar="BENCH.json", help="what was measured")
    result.add_rows(
        ("--out", "FILE", str, "write the fit, for `spcomm model predict` and `simulate`"),
        ("--figures", "FOLDER", str, "draw measured and fitted times, and the residuals, into FOLDER, as PNG"),
        ("--components", None, None,
         "find the latency components by difference of paths instead, and check them on a path not used"),
    )  # fmt: skip
    return result


def text(fitted: Fit) -> str:
    """Return the parameters of LogGP, and how well each operation is fitted."""
    names = list(fitted.transports)
    rows = [["", *(f"{name}, ns" for name in names)]]
    for parameter in PARAMETERS:
        estimates = [getattr(fitted.transports[name], parameter) for name in names]
        rows.append([parameter.removesuffix("_ns").replace("_", " "), *map(interval, estimates)])
    result = aligned(rows, indent="") + "\nIn brackets: intervals of 95 % confidence.\n\n"
    rows = [["operation", "transport", "cases less terms", "scatter, %"]]
    for name in names:
        for key, found in fitted.operations[name].items():
            rows.append([key, name, str(found.degrees), f"{100 * found.sigma:.0f}"])
    return result + aligned(rows, left=(0, 1), indent="")


def interval(found: Estimate | None) -> str:
    """Format with three significant digits, or as 0 what is nothing beside the end of the interval.

    >>> interval(Estimate(123.4, 100, 20000)), interval(Estimate(3e-16, 0, 139))
    ('123 (100 to 20000)', '0 (0 to 139)')
    """
    if found is None:
        return "–"
    numbers = (found.value, found.low, found.high)
    least = NOTHING * max(map(abs, numbers))
    value, low, high = (rounded(x if abs(x) >= least else 0.0, 3) for x in numbers)
    return f"{value} ({low} to {high})"


def rounded(number: float, digits: int) -> str:
    """Format with so many significant digits, without an exponent.

    >>> rounded(123456.7, 3)
    '123000'
    """
    return f"{float(f'{number:.{digits}g}'):.12g}"


def components_text(found: components.Components) -> str:
    """Return the tables of components and of the checks."""
    names = list(found.values)
    sizes = list(found.values[names[0]])
    rows = [["bytes", *(f"{name}, ns" for name in names)]]
    rows += [[str(size), *(rounded(found.values[name][size].value, 4) for name in names)] for size in sizes]
    result = aligned(rows, left=(), indent="")
    result += "\nAs in Table 1 of the thesis, for m bytes, in ns, with intervals of 95 % confidence:\n\n"
    rows = [
        [name, f"{interval(base)} + {interval(per_byte)} (m - {components.BASE})"]
        for name, (base, per_byte) in found.lines.items()
    ]
    result += aligned(rows, left=(0, 1), indent="")
    result += "\nPaths that were not used:\n\n"
    rows = [["path", "bytes", "predicted", "measured", "error, %", "spread of rounds, %"]]
    for (kind, hops), checks in found.checks.items():
        for size, check in checks.items():
            times = [time_text(check.predicted), time_text(check.measured)]
            rows.append(
                [
                    f"{kind}, {hops} hops",
                    str(size),
                    *times,
                    f"{100 * check.error:+.0f}",
                    f"{100 * check.spread:.0f}",
                ]
            )
    return result + aligned(rows, indent="")
