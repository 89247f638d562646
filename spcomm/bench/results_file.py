# SPDX-License-Identifier: MIT
"""Reads the JSON that `spcomm bench --json` writes; `docs/reference/bench_json.md` describes the format."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

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
_LARGEST = 2**63  # of any number but a sample


def load(path: str | Path) -> ResultsFile:
    """Read a file.

    Raises
    ------
    ResultsFileError
        It cannot be read, is no such file, or has another format.
    """
    try:
        whole = json.loads(Path(path).read_text(encoding="utf-8"))
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
        parts = (whole["date"], whole["machine"], whole["versions"], whole.get("chosen", {}))
        if not isinstance(parts[1], dict) or not 1 <= int(parts[1]["cores"]) < _LARGEST:
            raise ValueError("its machine has no number of cores")
        titles = {row["key"]: row["title"] for row in whole.get("rows", [])}
        thinned = tuple(
            (titles.get(key, key), name, int(rounds)) for key, name, rounds in whole.get("thinned", [])
        )
        failures = tuple(
            (titles.get(key, key), name, reason) for key, name, reason in whole.get("failures", [])
        )
        return ResultsFile(str(path), *parts, found, int(whole.get("planned_rounds", 0)), thinned, failures)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ResultsFileError(f"{str(path)!r} is damaged: {reason}") from error


def measurement(entry: dict[str, Any]) -> Measurement:
    fields = {name: entry[name] for name in Measurement.__dataclass_fields__ if name != "samples"}
    for name, value in fields.items():
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not isinstance(value, _KINDS[name]) or (is_number and not 0 <= value < _LARGEST):
            raise ValueError(f"{name} is {value!r:.40}")
    samples = tuple(tuple(float(sample) for sample in batches) for batches in entry["samples"])
    if not all(0 <= sample < math.inf for batches in samples for sample in batches):
        raise ValueError(f"{entry['key']!r} of {entry['contender']!r} has a sample that is no time or size")
    if not any(samples):
        raise ValueError(f"{entry['key']!r} of {entry['contender']!r} has no samples")
    return Measurement(**fields, samples=samples)
