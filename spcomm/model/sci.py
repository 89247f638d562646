# SPDX-License-Identifier: MIT
"""Latency of SCI rings and tori: the equations of D. M. Gonzalez's thesis on low-latency SCI systems (2000).

A torus has D dimensions with the same number of nodes, or with numbers of their own; one dimension is a ring. A packet
travels along the first dimension, then along the second, and so on. Its latency has four components: the overhead at
both ends, the propagation along each link, the forwarding through each node on the way, and the switching to another
dimension. Numbers of equations in this file are those of the thesis.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spcomm.model import ModelError, optional

MOST_DIMENSIONS = 4
HEADER_BYTES, SYMBOL_BYTES, SYMBOL_NS = 16, 2, 5.0
SATURATED_NS = 1e18  # stands for the latency of a torus that cannot carry the load
MOST_EXPONENT = 20  # crossovers are sought below 2 to this power
# Table 2 of the thesis, by the switching delay in ns: crossovers from D to D + 1 dimensions, D = 1, 2, 3.
PRINTED_AVERAGE = {670.0: (18, 191, 1831), 335.0: (9, 45, 232)}
PRINTED_MULTI_UNICAST = {670.0: (20, 220, 2050), 335.0: (5, 9, 18)}


@dataclass(frozen=True)
class Components:
    """The latency components in nanoseconds; the defaults are Table 1 of the thesis.

    The overhead of a message of m bytes is ``overhead_ns + overhead_per_byte_ns * (m - 64)``, at each end.
    """

    propagation_ns: float = 7.0
    forwarding_ns: float = 60.0
    switching_ns: float = 670.0
    overhead_ns: float = 2085.0
    overhead_per_byte_ns: float = 11.6

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not math.isfinite(value) or value < 0:
                raise ModelError(f"{name} must be a number of nanoseconds from 0 on; got {value}")

    def overhead(self, size: float) -> float:
        """Return the overhead at one end, in nanoseconds.

        >>> Components().overhead(64)
        2085.0
        """
        return max(0.0, self.overhead_ns + self.overhead_per_byte_ns * (size - 64))


@dataclass(frozen=True)
class Torus:
    """A torus with `nodes[k]` nodes in dimension k; a number that is not whole stands for an extrapolation.

    Attributes
    ----------
    nodes : nodes in each dimension, 1 to 4 of them.
    bidirectional : packets take the shorter way around each ring.
    """

    nodes: tuple[float, ...]
    bidirectional: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.nodes) <= MOST_DIMENSIONS:
            raise ModelError(f"a torus has 1 to {MOST_DIMENSIONS} dimensions; got {len(self.nodes)}")
        if not all(math.isfinite(n) and n >= 1 for n in self.nodes) or self.size <= 1:
            raise ModelError(f"no torus: {text_of(self.nodes)} has a dimension without nodes, or is one node")

    @classmethod
    def of(cls, total: float, dimensions: int, bidirectional: bool = False) -> "Torus":
        """Make the torus of `total` nodes with the same number, often not whole, in each dimension.

        >>> Torus.of(64, 3).nodes
        (4.0, 4.0, 4.0)
        """
        if not 1 <= dimensions <= MOST_DIMENSIONS:
            raise ModelError(f"a torus has 1 to {MOST_DIMENSIONS} dimensions; got {dimensions}")
        if not math.isfinite(total) or total < 2:
            raise ModelError(f"a torus has at least 2 nodes; got {total:g}")
        side = total ** (1 / dimensions)
        whole = round(side)
        return cls((float(whole) if whole**dimensions == total else side,) * dimensions, bidirectional)

    @property
    def size(self) -> float:
        """The number of nodes."""
        return math.prod(self.nodes)

    def ring_hops(self, n: float) -> float:
        """Return the average number of hops along one ring of n nodes, over all destinations, the own node too."""
        if not self.bidirectional:
            return (n - 1) / 2
        return (n * n // 4) / n if n == int(n) else n / 4

    def average_hops(self) -> float:
        """Return the average number of links on the way to another node, equation 14.

        >>> Torus((3, 3)).average_hops()
        2.25
        """
        return sum(map(self.ring_hops, self.nodes)) * self.size / (self.size - 1)

    def average_switches(self) -> float:
        """Return the average number of changes of dimension, equation 15.

        >>> Torus((3, 3)).average_switches()
        0.5
        """
        return sum(1 - 1 / n for n in self.nodes) * self.size / (self.size - 1) - 1

    def average_latency(self, components: Components, size: float = 64, load: float = 0.0) -> float:
        """Return the average latency in nanoseconds, equation 17, of a message of `size` bytes to another node."""
        hops, switches = self.average_hops(), self.average_switches()
        way = hops * components.propagation_ns + switches * components.switching_ns
        way += (hops - switches - 1) * components.forwarding_ns
        return 2 * components.overhead(size) + way + hops * self.waiting(size, load)

    def multi_unicast(self, components: Components, size: float = 64, load: float = 0.0) -> float:
        """Return the sum of the latencies from one node to all others, in nanoseconds: (N - 1) times the average."""
        return (self.size - 1) * self.average_latency(components, size, load)

    def point_to_point(
        self, hops: Sequence[int], components: Components, size: float = 64, load: float = 0.0
    ) -> float:
        """Return the latency in nanoseconds, equation 8, over `hops[k]` links in dimension k.

        >>> Torus((3, 3)).point_to_point((2, 1), Components())
        4921.0
        """
        if len(hops) != len(self.nodes) or not any(hops):
            raise ModelError(
                f"a message in a torus of {text_of(self.nodes)} needs {len(self.nodes)} numbers of hops, not all 0;"
                f" got {','.join(map(str, hops))}"
            )
        for count, n in zip(hops, self.nodes, strict=True):
            most = n // 2 if self.bidirectional else n - 1
            if not 0 <= count <= most:
                raise ModelError(
                    f"{count} hops in a ring of {n:g} nodes; a message takes 0 to {most:g} there"
                )
        total, used = sum(hops), sum(1 for count in hops if count)
        way = total * components.propagation_ns + (used - 1) * components.switching_ns
        way += (total - used) * components.forwarding_ns
        return 2 * components.overhead(size) + way + total * self.waiting(size, load)

    def response(self, hops: Sequence[int], components: Components, size: float = 64) -> float:
        """Return the latency of the response, equation 9: on around the same rings, back to the sender."""
        if self.bidirectional:
            return self.point_to_point(hops, components, size)
        back = [int(n) - count if count else 0 for count, n in zip(hops, self.nodes, strict=True)]
        return self.point_to_point(back, components, size)

    def utilisation(self, load: float) -> float:
        """Return the share of time in which a link is busy.

        `load` is the share of time in which a node puts packets onto its links. Each packet occupies every link of its
        way once, and a node has one link for each dimension and direction.
        """
        if not math.isfinite(load) or load < 0:
            raise ModelError(f"a load is a share of time from 0 on; got {load}")
        links = len(self.nodes) * (2 if self.bidirectional else 1)
        return load * self.average_hops() / links

    def waiting(self, size: float, load: float) -> float:
        """Return the time in nanoseconds that a packet waits for one link: an M/D/1 queue.

        Raises `ModelError` where the links cannot carry the load.
        """
        busy = self.utilisation(load)
        if busy >= 1:
            limit = load / busy
            raise ModelError(
                f"a torus of {text_of(self.nodes)} nodes cannot carry a load of {load:g}; it saturates at {limit:.3g}"
            )
        return busy / (2 * (1 - busy)) * transmission_ns(size)


def transmission_ns(size: float) -> float:
    """Return the time to put a packet onto a link: 16-bit symbols of 5 ns, and a header of 8 symbols.

    >>> transmission_ns(64)
    200.0
    """
    return math.ceil((size + HEADER_BYTES) / SYMBOL_BYTES) * SYMBOL_NS


def text_of(nodes: Sequence[float]) -> str:
    """Format as in ``--torus``.

    >>> text_of((4, 4, 2.5))
    '4x4x2.5'
    """
    return "x".join(f"{n:.0f}" if n == round(n) else f"{n:g}" for n in nodes)


def crossover(
    dimensions: int, components: Components, size: float = 64, bidirectional: bool = False, load: float = 0.0
) -> float | None:
    """Return the number of nodes from which one dimension more has the lower average latency.

    The multi-unicast total is (N - 1) times the average, so it crosses at the same number. 2: at any size. None: below
    a million nodes there is no such number. A torus that cannot carry the load is slower than any other.
    """
    optimize = optional("scipy.optimize")

    def latency(torus: Torus) -> float:
        return torus.average_latency(components, size, load) if torus.utilisation(load) < 1 else SATURATED_NS

    def advantage(exponent: float) -> float:
        fewer, more = (Torus.of(2.0**exponent, d, bidirectional) for d in (dimensions, dimensions + 1))
        return latency(fewer) - latency(more)

    low, step = 1.0, 0.25
    if advantage(low) > 0:
        return 2.0**low
    while low < MOST_EXPONENT:
        if advantage(low) <= 0 < advantage(low + step):
            return 2 ** optimize.brentq(advantage, low, low + step, xtol=1e-12)
        low += step
    return None


def on_quarters(total: float) -> float:
    """Round up to the next quarter of a node: the first size, in steps of a quarter, that the model prefers.

    >>> on_quarters(18.21)
    18.25
    """
    return math.ceil(total * 4) / 4
