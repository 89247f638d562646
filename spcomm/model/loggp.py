# SPDX-License-Identifier: MIT
"""LogGP: the parameters of a transport, each with its confidence interval, and the file that holds them.

LogGP (Alexandrov, Ionescu, Schauser, Scheiman 1995) describes a message by five numbers. A message of m bytes takes
overhead_send + latency + m · gap_per_byte + overhead_receive from the call of the sender to the return of the
receiver; a sender can begin the next message after the gap.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from spcomm.model.errors import ModelError

FORMAT = "spcomm model"
VERSION = 1
MEMORY, TCP = (
    "memory",
    "tcp",
)  # as in the JSON of `spcomm bench`: nodes share memory; each has a box of its own
TRANSPORTS = (MEMORY, TCP)


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


@dataclass(frozen=True)
class LogGP:
    """Parameters of one transport, in nanoseconds.

    Attributes
    ----------
    overhead_send_ns, overhead_receive_ns : the time that the call of the sender, and of the receiver, takes a core.
    latency_ns : from the end of the send to the begin of the receipt, for a message without content.
    gap_ns : the time between two messages of one sender, at least.
    gap_per_byte_ns : the time that each byte adds.
    noise : quantiles, from the smallest to the largest in equal steps, of the measured times of one case divided by
        their median; (1.0,) where nothing was measured.
    """

    overhead_send_ns: Estimate
    overhead_receive_ns: Estimate
    latency_ns: Estimate
    gap_ns: Estimate
    gap_per_byte_ns: Estimate
    noise: tuple[float, ...] = (1.0,)

    def message_ns(self, size: int) -> float:
        """Return the time of one message of `size` bytes, from the call of the sender to the return of the receiver.

        >>> exactly = lambda value: Estimate(value, value, value)
        >>> memory = LogGP(*map(exactly, (100, 80, 60, 120, 0.05)))
        >>> memory.message_ns(1000)
        290.0
        """
        overheads = self.overhead_send_ns.value + self.overhead_receive_ns.value
        return overheads + self.latency_ns.value + size * self.gap_per_byte_ns.value


PARAMETERS = tuple(entry.name for entry in fields(LogGP) if entry.name != "noise")


@dataclass(frozen=True)
class Fit:
    """The fitted model of a machine: `LogGP` by transport, and the machine that was measured."""

    transports: Mapping[str, LogGP]
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
    document = read_json(path)
    if document.get("format") != FORMAT:
        raise ModelError(
            f"{path!r} is not a fitted model; `spcomm model fit BENCH.json --out FILE` writes one"
        )
    if document.get("version") != VERSION:
        raise ModelError(
            f"{path!r} is a fitted model of version {document.get('version')}, and this spcomm reads version"
            f" {VERSION}; fit again with `spcomm model fit`"
        )
    try:
        transports = {name: loggp_of(entry) for name, entry in document["transports"].items()}
        return Fit(transports, document["machine"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path!r} is a damaged fitted model: {type(error).__name__}: {error}") from error


def read_json(path: str) -> dict[str, Any]:
    """Read a file that holds one JSON object."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise ModelError(f"cannot read {path!r}: {error.strerror}") from error
    except ValueError as error:
        raise ModelError(f"{path!r} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ModelError(f"{path!r} holds a JSON {type(document).__name__}, and not an object")
    return document


def loggp_of(entry: Mapping[str, Any]) -> LogGP:
    """Make the parameters from their JSON."""
    noise = tuple(float(value) for value in entry["noise"])
    return LogGP(**{name: Estimate(**entry[name]) for name in PARAMETERS}, noise=noise)
