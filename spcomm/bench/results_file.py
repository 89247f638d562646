# SPDX-License-Identifier: MIT
"""Reads the JSON that `spcomm bench --json` writes; `docs/reference/bench_json.md` describes the format."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from spcomm.text import printable

FORMAT = 2


class ResultsFileError(ValueError):
    """The file cannot be used; the text is one sentence with the reason."""


@dataclass(frozen=True)
class Measurement:
    """One contender on one point: all samples, one list for each round.

    Attributes
    ----------
    key : name of the row, the same in each run that measures it.
    contender : "spcomm", "openmpi", "mpich" and so on.
    operation : "pingpong", "broadcast" and so on.
    nodes, boxes : their numbers.
    transport : "memory", "tcp" (each node has a box of its own) or "mixed".
    route : "server" or "direct", between boxes; None: there is one box.
    encrypted : the boxes use TLS.
    bytes : size of one message; None: there is no one size.
    buffers : "hot" or "cold"; None: it does not apply.
    computing : processes that computed meanwhile, beside the nodes.
    unit : of the samples: "s" (seconds for one operation) or "B".
    samples : each is the mean over a batch of operations.
    """

    key: str
    contender: str
    operation: str
    nodes: int
    boxes: int
    transport: str
    route: str | None
    encrypted: bool
    bytes: int | None
    buffers: str | None
    computing: int
    unit: str
    samples: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class ResultsFile:
    """The contents of a file: `machine`, `versions` and `chosen` as they stand there.

    `thinned` has (title, contender, rounds) of each point with fewer rounds than the `planned_rounds`, `failures`
    (title, contender, reason) of each that failed.
    """

    path: str
    date: str
    machine: dict[str, Any]
    versions: dict[str, Any]
    chosen: dict[str, Any]
    measurements: tuple[Measurement, ...]
    planned_rounds: int = 0
    thinned: tuple[tuple[str, str, int], ...] = ()
    failures: tuple[tuple[str, str, str], ...] = ()


_KINDS = get_type_hints(Measurement)
_LARGEST = 2**63  # of any number
_MOST_CHARACTERS = 64 << 20  # of a file: Python's objects take ten times as much
_LEAST, _MOST_S = 1e-12, 1e9  # of a sample: no clock is as fine, and no measurement as long


def load(path: str | Path) -> ResultsFile:
    """Read a file.

    Raises
    ------
    ResultsFileError
        It cannot be read, is no such file, or has another format.
    """
    try:
        whole = read_json(path)
    except OSError as error:
        raise ResultsFileError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ResultsFileError(f"{str(path)!r} is not JSON: {error}") from error
    if not isinstance(whole, dict) or "format" not in whole or "machine" not in whole:
        raise ResultsFileError(f"{str(path)!r} was not written by spcomm bench --json")
    if whole["format"] != FORMAT:
        message = f"{str(path)!r} has format {whole['format']!r}, and this spcomm reads format {FORMAT}: measure again"
        raise ResultsFileError(message)
    try:
        found = tuple(measurement(entry) for entry in whole["measurements"])
        date, machine = typed(whole, "date", str), typed(whole, "machine", dict)
        for name, kind in (("cores", int), ("system", str), ("python", str)):
            if not typed(machine, name, kind):
                raise ValueError(f"{name} is {machine[name]!r}")
        typed({"busy_with_others": None, **machine}, "busy_with_others", float | int | None)
        titles = {row["key"]: row["title"] for row in whole.get("rows", [])}
        thinned, failures = (
            tuple(
                (shown(titles.get(key, key)), shown(name), last)
                for key, name, last in whole.get(list_name, [])
            )
            for list_name in ("thinned", "failures")
        )
        return ResultsFile(
            str(path),
            date,
            machine,
            typed(whole, "versions", dict),
            typed({"chosen": {}, **whole}, "chosen", dict),
            found,
            typed({"planned_rounds": 0, **whole}, "planned_rounds", int),
            tuple((*point, typed({"rounds": rounds}, "rounds", int)) for *point, rounds in thinned),
            tuple((*point, shown(reason)) for *point, reason in failures),
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ResultsFileError(f"{str(path)!r} is damaged: {reason}") from error


def read_json(path: str | Path) -> Any:
    """Read a JSON file; raise `OSError`, or `ValueError` or `RecursionError` where it is none."""
    return json.loads(read_text(path))


def read_text(path: str | Path) -> str:
    """Read a text; raise `OSError`, or `ValueError` where it is none, or does not end, as a device may not."""
    with open(path, encoding="utf-8") as file:
        text = file.read(_MOST_CHARACTERS + 1)
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"it has more than {_MOST_CHARACTERS >> 20} MiB")
    return text


def measurement(entry: dict[str, Any]) -> Measurement:
    fields = {name: typed(entry, name, kind) for name, kind in _KINDS.items() if name != "samples"}
    samples = tuple(tuple(float(sample) for sample in batches) for batches in entry["samples"])
    most = _MOST_S if fields["unit"] == "s" else _LARGEST
    if not all(_LEAST <= sample <= most for batches in samples for sample in batches):
        raise ValueError(f"{entry['key']!r} of {entry['contender']!r} has a sample that is no time or size")
    if not any(samples):
        raise ValueError(f"{entry['key']!r} of {entry['contender']!r} has no samples")
    return Measurement(**fields, samples=samples)


def typed(entry: dict[str, Any], name: str, kind: Any) -> Any:
    """Return a value of this kind: a number from 0 on, a text that a terminal can show."""
    value = entry[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
    is_wrong |= is_number and not 0 <= value < _LARGEST
    if is_wrong or (isinstance(value, str) and not value.isprintable()):
        raise ValueError(f"{name} is {value!r:.40}")
    return value


def shown(text: Any) -> str:
    """Return a text as a terminal or a page can show it."""
    return printable(str(text), "")
