# SPDX-License-Identifier: MIT
"""LogGP: the parameters of a transport, each with its confidence interval, and the file that holds them.

LogGP (Alexandrov, Ionescu, Schauser, Scheiman 1995) describes a message by five numbers. A message of m bytes takes
overhead_send + latency + m · gap_per_byte + overhead_receive from the call of the sender to the return of the
receiver; a sender can begin the next message after the gap. Two numbers more describe the bends that real transports
have: a message that does not fit into a slot costs a step, and bytes beyond the first 32 KiB have a gap of their own.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from spcomm.bench.results_file import read_json
from spcomm.model import ModelError

FORMAT = "spcomm model"
VERSION = 2
MEMORY, TCP = (
    "memory",
    "tcp",
)  # as in the JSON of `spcomm bench`: nodes share memory; each has a box of its own
TRANSPORTS = (MEMORY, TCP)
# Bytes of an array that, with its 24 of type and shape, travel in the line that announces the message.
SLOT = 16
LONG = 32 << 10  # bytes from which the gap per byte is another
MOST = 1e18  # of any number in a file, such as nanoseconds
MOST_LOGARITHM = 50.0  # of one time to another
WIDEST = 10.0  # factor from a value to the end of an interval that still says something


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval of 95 %, `low` to `high`."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        numbers = (self.value, self.low, self.high)
        if not all(math.isfinite(number) for number in numbers) or not self.low <= self.value <= self.high:
            raise ValueError(f"an estimate needs low <= value <= high, all finite; got {numbers}")

    @property
    def is_known(self) -> bool:
        """Whether the interval ends within a factor of ten on each side."""
        return self.high <= WIDEST * self.value <= WIDEST**2 * self.low


@dataclass(frozen=True)
class LogGP:
    """Parameters of one transport, in nanoseconds.

    Attributes
    ----------
    overhead_send_ns, overhead_receive_ns : the time that the call of the sender, and of the receiver, takes a core.
    latency_ns : from the end of the send to the begin of the receipt, for a message without content.
    gap_ns : the time between two messages of one sender, at least.
    gap_per_byte_ns : the time that each byte adds, up to 32 KiB.
    noise : quantiles, from the smallest to the largest in equal steps, of the measured times of one case divided by
        their median; (1.0,) where nothing was measured.
    slot_ns : the time that a message of more than 16 bytes adds.
    gap_per_long_byte_ns : the time that each byte beyond 32 KiB adds; None: as those before.
    """

    overhead_send_ns: Estimate
    overhead_receive_ns: Estimate
    latency_ns: Estimate
    gap_ns: Estimate
    gap_per_byte_ns: Estimate
    noise: tuple[float, ...] = (1.0,)
    slot_ns: Estimate = Estimate(0.0, 0.0, 0.0)
    gap_per_long_byte_ns: Estimate | None = None

    def size_ns(self, size: int) -> float:
        """Return the time that `size` bytes add to a message without content."""
        long = self.gap_per_byte_ns if self.gap_per_long_byte_ns is None else self.gap_per_long_byte_ns
        slot, short, rest = size_numbers(size)
        return slot * self.slot_ns.value + short * self.gap_per_byte_ns.value + rest * long.value

    def message_ns(self, size: int) -> float:
        """Return the time of one message of `size` bytes, from the call of the sender to the return of the receiver.

        >>> exactly = lambda value: Estimate(value, value, value)
        >>> memory = LogGP(*map(exactly, (100, 80, 60, 120, 0.05)))
        >>> memory.message_ns(1000)
        290.0
        """
        overheads = self.overhead_send_ns.value + self.overhead_receive_ns.value
        return overheads + self.latency_ns.value + self.size_ns(size)


PARAMETERS = tuple(entry.name for entry in fields(LogGP) if entry.name != "noise")


def size_numbers(size: int) -> tuple[float, float, float]:
    """Return whether a message needs more than a slot, its bytes up to 32 KiB, and those beyond.

    >>> size_numbers(8), size_numbers(40000)
    ((0.0, 8.0, 0.0), (1.0, 32768.0, 7232.0))
    """
    return float(size > SLOT), float(min(size, LONG)), float(max(0, size - LONG))


# Nodes and bytes of a case, and the logarithm of its measured to its modelled time.
Residual = tuple[int, int, float]


@dataclass(frozen=True)
class Kernel:
    """The covariance of the residuals of cases (`spcomm.model.residuals` has the formula).

    Attributes
    ----------
    amplitude : standard deviation of the logarithm of measured to modelled time.
    nodes_octaves, size_octaves : the distances over which it changes; an octave is a factor of two.
    noise : its standard deviation between measurements of the same case.
    """

    amplitude: float
    nodes_octaves: float
    size_octaves: float
    noise: float


@dataclass(frozen=True)
class OperationFit:
    """The fitted terms of one operation over one transport (`spcomm.model.terms` has their meaning).

    Attributes
    ----------
    terms : coefficient in nanoseconds by the name of the term.
    covariance : of the coefficients, in the order of `terms`.
    sigma : standard deviation of the logarithm of measured to modelled time.
    degrees : degrees of freedom: cases less terms.
    nodes, sizes : the smallest and the largest that were measured.
    residuals : of the cases that were fitted.
    kernel : by which residuals are interpolated, the same for all operations over a transport.
    """

    terms: Mapping[str, Estimate]
    covariance: tuple[tuple[float, ...], ...]
    sigma: float
    degrees: int
    nodes: tuple[int, int]
    sizes: tuple[int, int]
    residuals: tuple[Residual, ...]
    kernel: Kernel


@dataclass(frozen=True)
class Fit:
    """The fitted model of a machine.

    Attributes
    ----------
    transports : `LogGP` by transport.
    operations : by transport, then by operation; apart for nodes up to the cores and beyond them, as `terms.key` names
        them.
    cores : processors of the machine.
    machine : description of the machine that was measured.
    """

    transports: Mapping[str, LogGP]
    operations: Mapping[str, Mapping[str, OperationFit]] = field(default_factory=dict)
    cores: int = 1
    machine: Mapping[str, Any] = field(default_factory=dict)

    def of(self, transport: str) -> LogGP:
        """Return the parameters of a transport; raise `ModelError` if it was not measured."""
        if transport not in self.transports:
            known = ", ".join(self.transports) or "none"
            raise ModelError(f"the fit has no transport {transport!r}; it has: {known}")
        return self.transports[transport]

    def write(self, path: str) -> None:
        """Write the fit as JSON."""
        document = {"format": FORMAT, "version": VERSION, **asdict(self)}
        try:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
                file.write("\n")
        except OSError as error:
            raise ModelError(f"cannot write {path!r}: {error.strerror}") from error


def read(path: str) -> Fit:
    """Read a fit that `Fit.write` wrote; raise `ModelError` if the file is another or of another version."""
    again = "`spcomm model fit BENCH.json --out FILE` writes one"
    document = read_document(path, FORMAT, VERSION, "fitted model", again)
    try:
        transports = {name: loggp_of(entry) for name, entry in document["transports"].items()}
        operations = {
            name: {key: operation_of(entry) for key, entry in table.items()}
            for name, table in document["operations"].items()
        }
        return Fit(transports, operations, int(number(document["cores"], 1)), document["machine"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path!r} is damaged: {type(error).__name__}: {error}; {again}") from error


def read_document(path: str, form: str, version: int, noun: str, again: str) -> dict[str, Any]:
    """Read a JSON object that says it has this form and version; `again` tells how to get one, for complaints."""
    try:
        document = read_json(path)
    except OSError as error:
        raise ModelError(f"cannot read {path!r}: {error.strerror}; {again}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path!r} is not JSON ({error}); {again}") from error
    if not isinstance(document, dict) or document.get("format") != form:
        raise ModelError(f"{path!r} is no {noun}; {again}")
    if document.get("version") != version:
        found = document.get("version")
        raise ModelError(
            f"{path!r} is a {noun} of version {found!r:.40}, and this spcomm reads version {version}; {again}"
        )
    return document


def loggp_of(entry: Mapping[str, Any]) -> LogGP:
    """Make the parameters from their JSON."""
    noise = tuple(number(value) for value in entry["noise"])
    found = {name: estimate_of(entry[name]) for name in PARAMETERS if entry[name] is not None}
    return LogGP(**found, noise=noise)


def estimate_of(entry: Mapping[str, Any]) -> Estimate:
    return Estimate(**{name: number(value) for name, value in entry.items()})


def operation_of(entry: Mapping[str, Any]) -> OperationFit:
    """Make the terms of an operation from their JSON."""
    (least, most), (smallest, largest) = entry["nodes"], entry["sizes"]
    found = {name: estimate_of(estimate) for name, estimate in entry["terms"].items()}
    covariance = tuple(tuple(number(x, -(MOST**2), MOST**2) for x in row) for row in entry["covariance"])
    if [len(row) for row in covariance] != [len(found)] * len(found):
        raise ValueError(f"the covariance of {len(found)} terms has another shape")
    return OperationFit(
        found,
        covariance,
        number(entry["sigma"]),
        int(number(entry["degrees"], 1)),
        (number(least), number(most)),
        (number(smallest), number(largest)),
        tuple(
            (int(number(nodes, 1)), int(number(size)), number(value, -MOST_LOGARITHM, MOST_LOGARITHM))
            for nodes, size, value in entry["residuals"]
        ),
        Kernel(**{name: number(value, 1e-3, 1e3) for name, value in entry["kernel"].items()}),
    )


def number(value: Any, least: float = 0.0, most: float = MOST) -> Any:
    """Return a number of a file if it lies in a range; raise `ValueError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{value!r:.40} is not a number from {least:g} to {most:g}")
    return value
