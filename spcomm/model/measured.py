# SPDX-License-Identifier: MIT
"""Measured times: one case for each operation, number of nodes, size and path, out of JSON files of `spcomm bench`."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spcomm.bench.results_file import ResultsFile, ResultsFileError, load
from spcomm.model import ModelError
from spcomm.model.loggp import TRANSPORTS


@dataclass(frozen=True, order=True)
class Case:
    """A point that is measured: an operation of `nodes` nodes with messages of `size` bytes over a transport.

    Attributes
    ----------
    operation, nodes, size, transport : as in the JSON of `spcomm bench`; size 0 where an operation has none.
    direct, encrypted : the path between boxes; by default through the server, and readable.
    """

    operation: str
    nodes: int
    size: int
    transport: str
    direct: bool = False
    encrypted: bool = False

    def __str__(self) -> str:
        words = [self.operation, str(self.nodes), str(self.size), self.transport]
        return " ".join([*words, *["direct"] * self.direct, *["encrypted"] * self.encrypted])


@dataclass(frozen=True)
class Times:
    """Times of one case in nanoseconds: the median of each round, and all samples."""

    rounds: tuple[float, ...]
    samples: tuple[float, ...]

    @property
    def time(self) -> float:
        """The smallest of the rounds: what else runs on a machine only makes a round longer."""
        return min(self.rounds)

    @property
    def spread(self) -> float:
        """Largest less smallest round, divided by the smallest."""
        return (max(self.rounds) - min(self.rounds)) / min(self.rounds)


@dataclass(frozen=True)
class Measurements:
    """The times of cases, and the machine."""

    times: dict[Case, Times]
    cores: int
    machine: dict[str, Any]

    def of(self, operation: str, transport: str, **path: bool) -> dict[Case, Times]:
        """Return the cases of an operation over a transport, by default through the server and readable."""
        wanted = {"direct": False, "encrypted": False, **path}
        return {
            case: times
            for case, times in self.times.items()
            if (case.operation, case.transport, case.direct, case.encrypted)
            == (operation, transport, wanted["direct"], wanted["encrypted"])
        }

    def without(self, cases: Iterable[Case]) -> "Measurements":
        """Return the same without some cases."""
        left_out = set(cases)
        kept = {case: times for case, times in self.times.items() if case not in left_out}
        return Measurements(kept, self.cores, self.machine)


def read(paths: Sequence[str]) -> Measurements:
    """Read files of `spcomm bench --json`; rounds of the same case in several files are put together.

    Only times of spcomm with hot buffers on an otherwise free machine count. Raises `ModelError` if a file is no such
    file or of another format, if none has such times, or if the files are of machines with unlike numbers of cores.
    """
    try:
        files = [load(path) for path in paths]
    except ResultsFileError as error:
        raise ModelError(str(error)) from error
    rounds: dict[Case, list[float]] = {}
    samples: dict[Case, list[float]] = {}
    for file in files:
        for case, batches in cases_of(file):
            rounds.setdefault(case, []).extend(1e9 * statistics.median(batch) for batch in batches if batch)
            samples.setdefault(case, []).extend(1e9 * sample for batch in batches for sample in batch)
    if not rounds:
        raise ModelError(
            f"{', '.join(paths)}: no times of spcomm to fit; `spcomm bench sweep paths --json FILE` measures some"
        )
    cores = {int(file.machine["cores"]) for file in files}
    if len(cores) > 1:
        raise ModelError(
            f"{', '.join(paths)} are of machines with {' and '.join(map(str, sorted(cores)))} cores; fit one machine"
            " at a time"
        )
    machine = {name: files[0].machine.get(name) for name in ("cores", "system", "python")}
    times = {case: Times(tuple(rounds[case]), tuple(samples[case])) for case in rounds}
    return Measurements(times, cores.pop(), machine)


def cases_of(file: ResultsFile) -> Iterable[tuple[Case, tuple[tuple[float, ...], ...]]]:
    """Yield the cases of a file and their samples in seconds."""
    for entry in file.measurements:
        fits = entry.contender == "spcomm" and entry.unit == "s" and entry.transport in TRANSPORTS
        if fits and entry.bytes is not None and entry.buffers != "cold" and not entry.computing:
            case = Case(
                entry.operation,
                entry.nodes,
                entry.bytes,
                entry.transport,
                entry.route == "direct",
                entry.encrypted,
            )
            yield case, entry.samples
