# SPDX-License-Identifier: MIT
"""The command line of `spcomm trace`."""

import math
import os
import sys
from argparse import SUPPRESS, ArgumentTypeError, Namespace
from collections.abc import Callable

from spcomm.argument_parser import ArgumentParser
from spcomm.text import SIZE_GRAMMAR, TIME_GRAMMAR, duration_s, printable, size_bytes
from spcomm.trace import files
from spcomm.trace.errors import TraceError
from spcomm.trace.model import Trace, cut

_ENDINGS = {"--html": files.PAGES, "--png": (".png", ".svg", ".pdf")}
_LONGEST = 60  # characters of a number, in a complaint


def main(words: "list[str]") -> int:
    """Run `spcomm trace`; returns the exit code: 1 for a trace that cannot be shown, 125 for a wrong command line."""
    asked = _asked(words)
    try:
        _show(asked)
    except TraceError as error:
        print(f"spcomm trace: {printable(str(error))}", file=sys.stderr)
        return 1
    return 0


class _Parser(ArgumentParser):
    def is_value(self, name: str, word: str) -> bool:
        return word.endswith(_ENDINGS[name])


def parser() -> ArgumentParser:
    """Return the parser of `spcomm trace`."""
    made = _Parser(
        "spcomm trace",
        "spcomm trace FILE [options]",
        "Shows a trace that `spcomm run --trace FILE` recorded.",
        "An OUT that ends in .html, .htm, .png, .svg or .pdf may also be the next word, as in "
        f"--html out.html. TIME is {TIME_GRAMMAR}. SIZE is {SIZE_GRAMMAR}.\n\n"
        "WORLD is as in cores=2,compute=0.5. It has cores (of each box), compute and compute-RANK (factors), and calls "
        "(factor).\n\n"
        "FILE itself opens in ui.perfetto.dev, too.",
        completed="FILE",
    )
    made.add_argument("files", nargs="*", help=SUPPRESS)
    made.add_rows(
        ("--summary", None, None,
         "how each node spent its time, what it sent, how well the nodes were used (default)"),
        ("--matrix", None, None, "messages and bytes from each node to each other; with --png also as a picture"),
        ("--virtual", None, None, "how long the run takes where only comm.work(cost) takes time"),
        ("--latency", "UNITS", _units, "with --virtual: a message takes this many units of work (default: 0)"),
        ("--what-if", "WORLD", str, "how long the run takes with other cores or computing, and its critical path"),
        ("--html", "=OUT", str, "a page to explore, in one file, for any browser (default: FILE with .html)"),
        ("--png", "=OUT", str, "the timeline as a picture; OUT may be .svg or .pdf (default: FILE with .png)"),
        ("--from", "TIME", _seconds, "only events after this time,"),
        ("--to", "TIME", _seconds, "and before this one"),
        ("--min-bytes", "SIZE", _bytes, "only messages of this size or more"),
    )  # fmt: skip
    return made


def _asked(words: "list[str]") -> Namespace:
    made = parser()
    asked = made.parse_args(words)
    if not asked.files:
        made.error("which trace? As in `spcomm trace t.json`; `spcomm run --trace t.json` makes one")
    asked.file, *more = asked.files
    if more:
        made.error(
            f"give one trace, not {asked.file} and {more[0]}; an output is written with its option, as in "
            f"--html={more[0]}"
        )
    asked.outputs = {}
    for name, out in (("--html", asked.html), ("--png", asked.png)):
        if out == "":
            made.error(f"{name}= names no file; `{name}` alone takes the trace's name")
        if out is not None:
            default = os.path.splitext(asked.file)[0] + _ENDINGS[name][0]
            asked.outputs[name] = default if out is True else out
    if not (asked.matrix or asked.virtual or asked.outputs or asked.what_if is not None):
        asked.summary = True
    if asked.latency is not None and not asked.virtual:
        made.error("--latency is about virtual times; add --virtual, or leave it out")
    return asked


def _kind(read: "Callable[[str], float | None]", kind: str) -> "Callable[[str], float]":
    """Return a `type` for arguments: of this kind."""

    def checked(text: str) -> float:
        value = read(text)
        if value is None:
            raise ArgumentTypeError(f"{_short(text)} is not {kind}")
        return value

    return checked


def _number(text: str) -> "float | None":
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None


_seconds = _kind(duration_s, TIME_GRAMMAR)
_bytes = _kind(size_bytes, SIZE_GRAMMAR)
_units = _kind(_number, "a number of units of work, 0 or more")


def _short(text: str) -> str:
    return repr(text) if len(text) <= _LONGEST else f"{text[:_LONGEST]!r}..."


def _show(asked: Namespace) -> None:
    for option, out in asked.outputs.items():
        if os.path.abspath(out) == os.path.abspath(asked.file):
            raise TraceError(f"{option} would overwrite the trace {asked.file}; give another name")
    trace = _part(asked)
    texts = []
    if asked.summary:
        from spcomm.trace import summary

        texts.append(summary.text(trace))
    if asked.matrix:
        from spcomm.trace import matrix

        texts.append(matrix.text(trace))
    if asked.virtual:
        from spcomm.trace import virtual

        texts.append(virtual.text(trace, asked.latency or 0.0))
    if asked.what_if is not None:
        from spcomm.trace import what_if

        texts.append(what_if.text(asked.what_if, what_if.predict(trace, asked.what_if)))
    if texts:
        print("\n".join(texts), end="")
    for option, out in asked.outputs.items():
        _OUTPUTS[option](trace, out, asked.matrix)


def _part(asked: Namespace) -> Trace:
    """Return the trace, or the part that --from, --to and --min-bytes leave."""
    from spcomm.trace.reader import read

    trace = read(asked.file)
    begin, end = vars(asked)["from"], asked.to
    if begin is not None and begin * 1e6 >= trace.end:
        raise TraceError(f"--from {begin:g} is after the end: {asked.file} has {trace.end / 1e6:g} seconds")
    if end is not None and end <= (begin or 0.0):
        raise TraceError(f"--to {end:g} is not after --from {begin or 0:g}: nothing would be left")
    if (begin, end, asked.min_bytes) != (None, None, None):
        first = None if begin is None else begin * 1e6
        last = None if end is None else min(end * 1e6, trace.end)
        trace = cut(trace, first, last, asked.min_bytes or 0)
    return trace


def _html(trace: Trace, out: str, _also_matrix: bool) -> None:
    from spcomm.trace.page import page

    _write(out, lambda file: file.write(page(trace)))


def _png(trace: Trace, out: str, also_matrix: bool) -> None:
    from spcomm.trace import picture

    _say(out, lambda: picture.timeline(trace, out))
    if also_matrix:
        base, ending = os.path.splitext(out)
        also = f"{base}-matrix{ending}"
        _say(also, lambda: picture.matrix(trace, also))


_OUTPUTS: "dict[str, Callable[[Trace, str, bool], None]]" = {"--html": _html, "--png": _png}


def _write(path: str, fill: "Callable") -> None:
    _say(path, lambda: files.replace(path, fill))


def _say(path: str, make: "Callable[[], None]") -> None:
    """Makes a file and prints its name: on stderr, as stdout is for the summary."""
    try:
        make()
    except OSError as error:
        raise TraceError(f"cannot write {path}: {error.strerror or error}") from None
    print(f"spcomm trace: wrote {printable(path)}", file=sys.stderr)
