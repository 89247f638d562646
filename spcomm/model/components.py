# SPDX-License-Identifier: MIT
"""Latency components by difference of paths, as equations 18 to 25 of the thesis find them, and paths to check them.

The thesis measures ping-pongs over one hop, over four hops and over a change of dimension, takes the components from
the differences, and compares their sum with a path of three hops. Here a message goes along a chain of nodes: in shared
memory, over TCP from box to box, or over TCP with the server at each hop. A path of h hops takes

===================  ==================================================
shared memory        2 overhead + (h - 1) forwarding
direct               2 overhead + (h - 1) forwarding
through the server   2 overhead + (h - 1) forwarding + h switching
===================  ==================================================

where overhead and forwarding are those of the transport. Overhead comes from one hop, forwarding from four hops less
one, switching from one hop through the server less one without it. Paths of two and three hops are not used: they
check the components.
"""

import math
import statistics
from dataclasses import dataclass

from spcomm.model import ModelError, optional
from spcomm.model.fit import student
from spcomm.model.loggp import MEMORY, TCP, Estimate
from spcomm.model.measured import Measurements, Times

# Kind of path: transport, whether from box to box.
KINDS = {"memory": (MEMORY, False), "direct": (TCP, True), "server": (TCP, False)}
FAR = 4  # hops of the longest path
# Component: by how much of which path, by kind and hops.
DIFFERENCES = {
    "memory overhead": {("memory", 1): 1 / 2},
    "memory forwarding": {("memory", FAR): 1 / (FAR - 1), ("memory", 1): -1 / (FAR - 1)},
    "TCP overhead": {("direct", 1): 1 / 2},
    "TCP forwarding": {("direct", FAR): 1 / (FAR - 1), ("direct", 1): -1 / (FAR - 1)},
    "switching": {("server", 1): 1.0, ("direct", 1): -1.0},
}
CHECKED = [(kind, hops) for kind in KINDS for hops in (2, 3)]
LEAST_SIZES = 4  # two more than a line has coefficients
BASE = 64  # bytes, as in Table 1 of the thesis


@dataclass(frozen=True)
class Check:
    """A path that was not used: predicted and measured time in nanoseconds, and the spread of the rounds."""

    predicted: float
    measured: float
    spread: float

    @property
    def error(self) -> float:
        """The predicted time less the measured one, divided by that."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Components:
    """Components in nanoseconds by size; a line for each as in Table 1 of the thesis; the checks by size.

    Attributes
    ----------
    values : by component, then by size.
    lines : by component: the time of 64 bytes, and what each byte more adds.
    checks : by kind of path and hops, then by size.
    """

    values: dict[str, dict[int, Estimate]]
    lines: dict[str, tuple[Estimate, Estimate]]
    checks: dict[tuple[str, int], dict[int, Check]]


def stages(kind: str, hops: int) -> dict[str, int]:
    """Return the components of a path and how often it has each.

    >>> stages("server", 3)
    {'TCP overhead': 2, 'TCP forwarding': 2, 'switching': 3}
    """
    name = "memory" if kind == "memory" else "TCP"
    found = {f"{name} overhead": 2, f"{name} forwarding": hops - 1}
    return {**found, "switching": hops} if kind == "server" else found


def find(measured: Measurements) -> Components:
    """Find the components at each size at which all paths were measured; raise `ModelError` if there are too few."""
    needed = {path for weights in DIFFERENCES.values() for path in weights} | set(CHECKED)
    paths: dict[tuple[str, int], dict[int, Times]] = {}
    for kind, hops in sorted(needed):
        transport, direct = KINDS[kind]
        found = measured.of("chain", transport, direct=direct)
        paths[kind, hops] = {case.size: times for case, times in found.items() if case.nodes == hops + 1}
    sizes = sorted(set.intersection(*(set(found) for found in paths.values())))
    if len(sizes) < LEAST_SIZES:
        missing = [f"{kind}, {hops} hops" for (kind, hops), found in paths.items() if not found]
        why = f"nothing measured over: {'; '.join(missing)}" if missing else f"{len(sizes)} sizes in common"
        raise ModelError(
            f"components need chains of one to {FAR} hops at {LEAST_SIZES} sizes or more; {why}."
            " `spcomm bench paths --json FILE` measures them"
        )
    values = {
        name: {
            size: difference([(weight, paths[path][size]) for path, weight in weights.items()])
            for size in sizes
        }
        for name, weights in DIFFERENCES.items()
    }
    checks = {
        path: {
            size: Check(
                sum(count * values[name][size].value for name, count in stages(*path).items()),
                statistics.median(paths[path][size].rounds),
                paths[path][size].spread,
            )
            for size in sizes
        }
        for path in CHECKED
    }
    return Components(values, {name: line(found) for name, found in values.items()}, checks)


def difference(weighted: list[tuple[float, Times]]) -> Estimate:
    """Return the median over the rounds of the weighted sum; the interval is that of its mean by Student's t.

    A round measures all paths within seconds, so a disturbance of the whole round leaves differences alone.
    """
    rounds = [
        sum(weight * value for (weight, _), value in zip(weighted, values, strict=True))
        for values in zip(*(times.rounds for _, times in weighted), strict=False)
    ]
    value = statistics.median(rounds)
    if len(rounds) == 1:
        return Estimate(value, value, value)
    half = student(len(rounds) - 1) * statistics.stdev(rounds) / math.sqrt(len(rounds))
    return Estimate(value, value - half, value + half)


def line(values: dict[int, Estimate]) -> tuple[Estimate, Estimate]:
    """Return the time of 64 bytes and the time for each byte more: least squares of relative errors."""
    np = optional("numpy")
    sizes = np.array(list(values), float) - BASE
    times = np.array([found.value for found in values.values()])
    weights = 1 / np.maximum(np.abs(times), 1e-9)
    table = np.stack([np.ones(len(sizes)), sizes], axis=1) * weights[:, None]
    found, *_ = np.linalg.lstsq(table, times * weights, rcond=None)
    degrees = max(1, len(sizes) - 2)
    variance = float(np.sum((table @ found - times * weights) ** 2)) / degrees
    covariance = np.linalg.inv(table.T @ table) * variance
    halves = [student(degrees) * math.sqrt(covariance[k][k]) for k in range(2)]
    first, second = (
        Estimate(float(v), float(v - h), float(v + h)) for v, h in zip(found, halves, strict=True)
    )
    return first, second
