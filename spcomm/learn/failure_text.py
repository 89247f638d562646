# SPDX-License-Identifier: MIT
"""The judge's text for a run that did not end well: the launcher's own report, or a sentence."""

import errno
import json
import os
import re

from spcomm.launch.base.process import signal_name
from spcomm.learn import values
from spcomm.learn.case import Wrong
from spcomm.learn.catalogue import Limits
from spcomm.learn.errors import LearnError
from spcomm.learn.running import Run
from spcomm.text import printable

_LONG = 400  # characters of a program's message
_MOST_LINES = 24
_FRAME = re.compile(r'\s*File "(.*)", line (\d+)(?:, in (.*))?')
# In no call: it is what others wait for.
_COMPUTES = re.compile(r"\s+(nodes?(?: \S+)+)\s{2,}(\S+:\d+(?: in .*)?)")
_LOST = re.compile(r"node (\d+) has finished")


def values_of(run: Run, file: str, limits: Limits) -> "list[object]":
    """Return the return values of the nodes, by rank. Raises `Wrong` if the run did not end well."""
    if run.stopped:
        raise Wrong(f"{_exceeded(run.stopped, limits)} ({run.case.name})")
    if run.code != 0:
        raise Wrong(_failed(run, file, limits))
    if len(run.output.encode()) + sum(len(line) for _node, line in run.errors) > limits.output_kib * 1024:
        raise Wrong(f"{_exceeded('output', limits)} ({run.case.name})")
    return [_value(run, rank) for rank in range(run.case.nodes)]


def _value(run: Run, rank: int) -> object:
    name = run.case.name
    if rank in run.doubled:
        raise Wrong(f"node {rank} returned more than once (does it fork?); it must return once ({name})")
    if rank not in run.results:
        raise Wrong(f"{_silent(run, rank)} ({name})")
    try:
        told = json.loads(run.results[rank])
        if isinstance(told, dict) and isinstance(told.get("cannot"), str):
            raise Wrong(f"node {rank} {_cut(told['cannot'])} ({name})")
        return values.from_text(told["returned"])
    except values.ValueProblem as problem:
        raise Wrong(f"node {rank} returned {problem} ({name})") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Wrong(f"node {rank} returned something that cannot be read ({name})") from None


def _silent(run: Run, rank: int) -> str:
    return f"node {rank} ended without returning from {run.case.function}() (sys.exit, os._exit?)"


def _exceeded(what: str, limits: Limits) -> str:
    return {
        "seconds": f"the program took longer than {limits.seconds:g} s and did not end when it was told to",
        "memory": f"the program used more than {limits.memory_mib:g} MiB of memory, all nodes together",
        "processes": f"the program had more than {limits.processes} processes: does it fork without end?",
        "output": f"the program printed more than {limits.output_kib:g} KiB: does it print in a loop without end?",
        "guard": "the program ended or stopped the process that watches over it: signals to others than its own "
        "are not allowed",
    }[what]


def _failed(run: Run, file: str, limits: Limits) -> str:
    """The text for a run with an exit code other than 0."""
    name = run.case.name
    said = [line for node, line in run.errors if node is None and line.strip()]
    if (
        run.code == 125 and said and run.trace == b""
    ):  # else it ran, and may have written to the launcher's stderr
        _complain(said[-1], name)
    if run.code == 99 or run.code == 124:
        return _unfinished(run, [_cut(line) for line in said[:_MOST_LINES]], limits)
    raised = _traceback(run, file)
    if raised is not None:
        lost = _LOST.search(raised)
        if (
            "NodeLostError" in raised
            and lost
            and int(lost[1]) in set(range(run.case.nodes)) - set(run.results)
        ):
            return f"{_silent(run, int(lost[1]))}; {raised} ({name})"
        return f"{raised} ({name})"
    if not said and (run.code < 0 or run.code > 128):  # the walls make 128 + number of it
        ended = signal_name(-run.code if run.code < 0 else run.code - 128)
        return f"the program's launcher was ended by {ended}: did the program interfere with it? ({name})"
    why = said[-1].removeprefix("spcomm: ") if said else f"the program ended with exit code {run.code}"
    return f"{_cut(why)} ({name})"


def _unfinished(run: Run, said: "list[str]", limits: Limits) -> str:
    """The launcher's report, below a line that stands for itself in a list."""
    text = "the program did not finish"
    if run.code == 124:
        text += f" within {limits.seconds:g} s"
        place = next(filter(None, map(_COMPUTES.fullmatch, said)), None)
        if place:
            text += f": {place[1]} {'were' if place[1].startswith('nodes') else 'was'} at {place[2]}"
    elif said:
        text += f": {said.pop(0).removeprefix('spcomm: ')}"
    return "\n".join([f"{text} ({run.case.name})", *said])


def _complain(said: str, name: str) -> None:
    """The text for a failure of the launcher, if it is one: not the student's fault."""
    if said.startswith("spcomm run: "):
        raise LearnError(f"check.py: spcomm run refuses case {name!r}: {_cut(said)}")
    is_gone = os.strerror(errno.ENOENT)  # without walls a program can delete the judge's folder
    if said.startswith("spcomm: the trace cannot be written") and is_gone not in said:
        raise LearnError(f"the judge cannot store the program's trace: {_cut(said.removeprefix('spcomm: '))}")


def _traceback(run: Run, file: str) -> "str | None":
    """The last traceback in a sentence, with the last line of the student's file; None if there is none."""
    by_node: dict[int, list[str]] = {}
    last = None
    for node, line in run.errors:
        if node is not None:
            by_node.setdefault(node, []).append(line)
            if line.startswith("Traceback (most recent call last)") or _FRAME.match(line):
                last = node
    if last is None:
        return None
    lines = by_node[last]
    begin = max((at for at, line in enumerate(lines) if line.startswith("Traceback (most")), default=0)
    lines = lines[begin:]
    where = code = said = ""
    more: list[str] = []
    for at, line in enumerate(lines):
        match = _FRAME.match(line)
        if match:
            said = ""
            if match[1].rpartition("/")[2] == file:
                place = f"{file}:{match[2]}"
                where = f"{place}, in {match[3]}" if match[3] and match[3] != "<module>" else place
                code = lines[at + 1].strip() if at + 1 < len(lines) else ""
        elif line and not line[0].isspace() and not said and not line.startswith(("Traceback", "+", "|")):
            said, more = line, [_cut(line) for line in lines[at + 1 :][:_MOST_LINES]]
    at = f" at {where}: {_cut(code)}" if where else ""
    raised = f"node {last} raised {_cut(said) or 'an exception'}"
    if said.startswith("spcomm.") and more:  # the calls of the nodes, in a mismatch
        return "\n".join([raised, *more, at.strip()])
    return raised + at


def _cut(text: str) -> str:
    """Return one line of bounded length, with unprintable characters replaced."""
    line = printable(text)
    return line if len(line) <= _LONG else f"{line[:_LONG]}…"
