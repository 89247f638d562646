# SPDX-License-Identifier: MIT
"""The command line of `spcomm trace`."""

import math
import os
import sys
from collections.abc import Callable

from spcomm.command_help import CommandHelp
from spcomm.text import SIZE_GRAMMAR, TIME_GRAMMAR, duration_s, is_option, printable, size_bytes
from spcomm.trace import files
from spcomm.trace.errors import TraceError
from spcomm.trace.model import Trace, cut

_ENDINGS = {"--html": files.PAGES, "--png": (".png", ".svg", ".pdf")}
_WORDS = ("--what-if",)
_ALONE = ("--summary", "--matrix", "--virtual")
_EXAMPLES = {"--what-if": "a world, as in `--what-if compute=0.5`"}
_LONGEST = 60  # characters of a number, in a complaint


def main(words: "list[str]") -> int:
    """Run `spcomm trace`; returns the exit code: 1 for a trace that cannot be shown, 125 for a wrong command line."""
    if any(word in ("-h", "--help") for word in words):
        print(command_help().text(), end="")
        return 0
    try:
        asked = _Arguments(words)
    except _UsageError as error:
        print(f"spcomm trace: {printable(str(error))}", file=sys.stderr)
        return 125
    try:
        _show(asked)
    except TraceError as error:
        print(f"spcomm trace: {printable(str(error))}", file=sys.stderr)
        return 1
    return 0


def command_help() -> CommandHelp:
    """Return the help of `spcomm trace`."""
    rows = [
        ("--summary", "how each node spent its time, what it sent, how well the nodes were used (default)"),
        ("--matrix", "messages and bytes from each node to each other; with --png also as a picture"),
        ("--virtual", "how long the run takes where only comm.work(cost) takes time"),
        ("--latency UNITS", "with --virtual: a message takes this many units of work (default: 0)"),
        ("--what-if WORLD", "how long the run takes with other cores or computing, and its critical path"),
        ("--html[=OUT]", "a page to explore, in one file, for any browser (default: FILE with .html)"),
        ("--png[=OUT]", "the timeline as a picture; OUT may be .svg or .pdf (default: FILE with .png)"),
        ("--from TIME", "only events after this time,"),
        ("--to TIME", "and before this one"),
        ("--min-bytes SIZE", "only messages of this size or more"),
    ]
    return CommandHelp(
        "spcomm trace FILE [options]",
        "Shows a trace that `spcomm run --trace FILE` recorded.",
        ("", rows),
        closing="An OUT that ends in .html, .htm, .png, .svg or .pdf may also be the next word, as in "
        f"--html out.html. TIME is {TIME_GRAMMAR}. SIZE is {SIZE_GRAMMAR}.\n\n"
        "WORLD is as in cores=2,compute=0.5. It has cores (of each box), compute and compute-RANK (factors), and calls "
        "(factor).\n\n"
        "FILE itself opens in ui.perfetto.dev, too.",
        arguments="FILE",
    )


class _UsageError(Exception):
    """The text is the whole sentence."""


class _Arguments:
    """Arguments of the command line."""

    def __init__(self, words: "list[str]") -> None:
        self.file = ""
        self.alone: set[str] = set()
        self.outputs: dict[str, str] = {}  # option: where to, "" for the default
        self.values: dict[str, float] = {}
        self.words: dict[str, str] = {}
        rest = list(words)
        while rest:
            self._take(rest.pop(0), rest)
        if not self.file:
            raise _UsageError(
                "which trace? As in `spcomm trace t.json`; `spcomm run --trace t.json` makes one"
            )
        if not self.alone and not self.outputs and "--what-if" not in self.words:
            self.alone.add("--summary")
        if "--latency" in self.values and "--virtual" not in self.alone:
            raise _UsageError("--latency is about virtual times; add --virtual, or leave it out")

    def _take(self, word: str, rest: "list[str]") -> None:
        name, is_given, value = word.partition("=")
        if word in _ALONE:
            self.alone.add(word)
        elif name in _ENDINGS:
            if is_given and not value:
                raise _UsageError(f"{name}= names no file; `{name}` alone takes the trace's name")
            if not is_given and rest and not is_option(rest[0]) and rest[0].endswith(_ENDINGS[name]):
                value = rest.pop(0)
            self.outputs[name] = value
        elif name in _KINDS:
            if not is_given:
                if not rest or is_option(rest[0]):
                    raise _UsageError(f"{name} needs a number, as in `{name} 2`")
                value = rest.pop(0)
            self.values[name] = _number(name, value)
        elif name in _WORDS:
            if not is_given:
                if not rest or is_option(rest[0]):
                    raise _UsageError(f"{name} needs {_EXAMPLES[name]}")
                value = rest.pop(0)
            self.words[name] = value
        elif word.startswith("-"):
            raise _UsageError(f"no option {word}; `spcomm trace --help` lists them{_near(name)}")
        elif self.file:
            raise _UsageError(
                f"give one trace, not {self.file} and {word}; an output is written with its option, as in "
                f"--html={word}"
            )
        else:
            self.file = word

    def out(self, option: str) -> str:
        """The destination of an output."""
        return self.outputs[option] or os.path.splitext(self.file)[0] + _ENDINGS[option][0]


def _number(name: str, text: str) -> float:
    read, kind = _KINDS[name]
    value = read(text)
    if value is None:
        raise _UsageError(f"{name} is {_short(text)}; it takes {kind}")
    return value


def _units(text: str) -> "float | None":
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None


_KINDS: "dict[str, tuple[Callable[[str], float | None], str]]" = {
    "--from": (duration_s, TIME_GRAMMAR),
    "--to": (duration_s, TIME_GRAMMAR),
    "--min-bytes": (size_bytes, SIZE_GRAMMAR),
    "--latency": (_units, "a number of units of work, 0 or more"),
}


def _short(text: str) -> str:
    return repr(text) if len(text) <= _LONGEST else f"{text[:_LONGEST]!r}..."


def _near(name: str) -> str:
    from difflib import get_close_matches

    found = get_close_matches(name, [*_ALONE, *_KINDS, *_WORDS, *_ENDINGS], 1)
    return f"; did you mean {found[0]}?" if found else ""


def _show(asked: _Arguments) -> None:
    for option in asked.outputs:
        if os.path.abspath(asked.out(option)) == os.path.abspath(asked.file):
            raise TraceError(f"{option} would overwrite the trace {asked.file}; give another name")
    trace = _part(asked)
    texts = []
    if "--summary" in asked.alone:
        from spcomm.trace import summary

        texts.append(summary.text(trace))
    if "--matrix" in asked.alone:
        from spcomm.trace import matrix

        texts.append(matrix.text(trace))
    if "--virtual" in asked.alone:
        from spcomm.trace import virtual

        texts.append(virtual.text(trace, asked.values.get("--latency", 0.0)))
    if "--what-if" in asked.words:
        from spcomm.trace import what_if

        words = asked.words["--what-if"]
        texts.append(what_if.text(words, what_if.predict(trace, words)))
    if texts:
        print("\n".join(texts), end="")
    for option in asked.outputs:
        _OUTPUTS[option](trace, asked)


def _part(asked: _Arguments) -> Trace:
    """Return the trace, or the part that --from, --to and --min-bytes leave."""
    from spcomm.trace.reader import read

    trace = read(asked.file)
    begin, end = (asked.values.get(name) for name in ("--from", "--to"))
    if begin is not None and begin * 1e6 >= trace.end:
        raise TraceError(f"--from {begin:g} is after the end: {asked.file} has {trace.end / 1e6:g} seconds")
    if end is not None and end <= (begin or 0.0):
        raise TraceError(f"--to {end:g} is not after --from {begin or 0:g}: nothing would be left")
    if asked.values.keys() - {"--latency"}:
        first = None if begin is None else begin * 1e6
        last = None if end is None else min(end * 1e6, trace.end)
        trace = cut(trace, first, last, int(asked.values.get("--min-bytes", 0)))
    return trace


def _html(trace: Trace, asked: _Arguments) -> None:
    from spcomm.trace.page import page

    _write(asked.out("--html"), lambda file: file.write(page(trace)))


def _png(trace: Trace, asked: _Arguments) -> None:
    from spcomm.trace import picture

    out = asked.out("--png")
    _say(out, lambda: picture.timeline(trace, out))
    if "--matrix" in asked.alone:
        base, ending = os.path.splitext(out)
        also = f"{base}-matrix{ending}"
        _say(also, lambda: picture.matrix(trace, also))


_OUTPUTS: "dict[str, Callable[[Trace, _Arguments], None]]" = {"--html": _html, "--png": _png}


def _write(path: str, fill: "Callable") -> None:
    _say(path, lambda: files.replace(path, fill))


def _say(path: str, make: "Callable[[], None]") -> None:
    """Makes a file and prints its name: on stderr, as stdout is for the summary."""
    try:
        make()
    except OSError as error:
        raise TraceError(f"cannot write {path}: {error.strerror or error}") from None
    print(f"spcomm trace: wrote {printable(path)}", file=sys.stderr)
