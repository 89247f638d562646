# SPDX-License-Identifier: MIT
"""Simulates operations of many nodes, message by message: over one server, a tree of servers, or direct links.

`engine` is the simulation itself, in C. docs/internals/simulate.md has its rules.
"""

import json
import math
import os
import time
from array import array
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from spcomm.model import ModelError, engine
from spcomm.model.loggp import LogGP, read_document
from spcomm.model.sci import MOST_DIMENSIONS, text_of

DIRECT = 0  # the radix of a network without servers
NODES_MOST = 2**26
MESSAGES_MOST = 200_000_000  # minutes; more is a mistake, or n²
BYTES_MOST = 2**30
COST_MOST_NS = 1e9
NOISE_FORMAT = "spcomm noise"
NOISE_VERSION = 1

# By operation, by algorithm: the program's number in engine_program.h. The first algorithm is the default where there
# is a server; `server` needs one.
ALGORITHMS: "dict[str, dict[str, int]]" = {
    "barrier": {"server": 0, "tree": 2, "dissemination": 4},
    "broadcast": {"server": 1, "tree": 3},
    "allreduce": {"server": 0, "tree": 2, "binary-swap": 5, "ring": 6},
    "all-to-all": {"pairwise": 7},
    "neighbors": {"pairwise": 8},
    "unbalanced": {"pairwise": 9},
    "multicast": {"server": 1, "tree": 10},
}


@dataclass(frozen=True)
class Costs:
    """Times of one message, in nanoseconds.

    Attributes
    ----------
    send_ns, receive_ns : the processor of a node, for each message.
    latency_ns : of each link, from the sending port to the receiving one.
    gap_ns : between two messages at a port.
    byte_ns : for each byte, at a port and on the link.
    combine_ns : for each byte that a node or a server combines with another.
    server_receive_ns, server_send_ns : the processor of a server, for each message in, and for each out.
    server_byte_ns : the processor of a server, for each byte in, and for each out.
    """

    send_ns: float = 2000.0
    receive_ns: float = 2000.0
    latency_ns: float = 10000.0
    gap_ns: float = 500.0
    byte_ns: float = 0.5
    combine_ns: float = 0.25
    server_receive_ns: float = 3000.0
    server_send_ns: float = 3000.0
    server_byte_ns: float = 0.1

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            least = 1 if entry.name == "latency_ns" else 0
            most = 100 if entry.name in ("byte_ns", "combine_ns", "server_byte_ns") else COST_MOST_NS
            if not least <= value <= most:
                name = entry.name.removesuffix("_ns").replace("_", "-")
                raise ModelError(f"{name} is {value:g} ns; the simulator takes {least} ns to {most:g} ns")

    @classmethod
    def of_fit(cls, found: LogGP) -> "Costs":
        """Return the costs of nodes and links that a fit has found; those of servers are the defaults."""
        return cls(
            send_ns=found.overhead_send_ns.value,
            receive_ns=found.overhead_receive_ns.value,
            latency_ns=max(1.0, found.latency_ns.value),
            gap_ns=found.gap_ns.value,
            byte_ns=found.gap_per_byte_ns.value,
        )

    def of_engine(self) -> "tuple[int, ...]":
        """Return whole nanoseconds, and whole picoseconds for each byte, as the engine takes them."""
        nodes = (self.send_ns, self.receive_ns, self.latency_ns, self.gap_ns)
        servers = (self.server_receive_ns, self.server_send_ns)
        by_byte = (self.byte_ns, self.combine_ns, self.server_byte_ns)
        return (*map(round, nodes + servers), *(round(1000 * cost) for cost in by_byte))


class Noise(NamedTuple):
    """Measured delays, in nanoseconds, which the operating system adds to each piece of work of a processor.

    Node r draws from `series[r % len(series)]`; all series have one length.
    """

    series: "tuple[array[int], ...]" = ()

    @classmethod
    def measure(cls, work_ns: int = 2000, count: int = 65536) -> "Noise":
        """Time `count` equal pieces of work on each core that this process may use, one core after another."""
        if not hasattr(os, "sched_setaffinity"):
            return cls((array("i", engine.measure_noise(work_ns, count)),))
        cores = os.sched_getaffinity(0)
        series = []
        try:
            for core in sorted(cores):
                os.sched_setaffinity(0, {core})
                series.append(array("i", engine.measure_noise(work_ns, count)))
        finally:
            os.sched_setaffinity(0, cores)
        return cls(tuple(series))

    @classmethod
    def read(cls, path: str) -> "Noise":
        """Read what `write` wrote; raise `ModelError` for anything else."""
        again = f"`spcomm model simulate --measure-noise {path}` writes one"
        document = read_document(path, NOISE_FORMAT, NOISE_VERSION, "noise measurement", again)
        try:
            series = tuple(array("i", one) for one in document["noise_ns"])
        except (KeyError, TypeError, OverflowError) as error:
            raise ModelError(
                f"{path!r} is damaged: `noise_ns` is no list of lists of nanoseconds; {again}"
            ) from error
        if not series or len({len(one) for one in series}) > 1 or not series[0] or min(map(min, series)) < 0:
            raise ModelError(
                f"{path!r} is damaged: it needs series of one length, of numbers from 0 on; {again}"
            )
        return cls(series)

    def write(self, path: str) -> None:
        """Write it as JSON."""
        series = [one.tolist() for one in self.series]
        try:
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"format": NOISE_FORMAT, "version": NOISE_VERSION, "noise_ns": series}, file)
        except OSError as error:
            raise ModelError(f"cannot write {path!r}: {error.strerror}") from error


@dataclass(frozen=True)
class Case:
    """One simulation.

    Attributes
    ----------
    operation, algorithm : of `ALGORITHMS`.
    nodes : how many.
    radix : nodes of a server, and servers of a server above; as many as nodes: a single server; `DIRECT`: none.
    rounds : how often each node does it; of `unbalanced`, the messages that each node sends.
    bytes : of a message, of an array that is reduced.
    fanout : of the tree of a multicast.
    hot_percent : of `unbalanced`, messages that go to node 0; the others go to random nodes.
    seed : of random destinations and of noise.
    torus : of `neighbors`, the nodes along each of up to 4 dimensions, ranks in the order of MPI's: the last dimension
        first; without one a ring.
    """

    operation: str
    nodes: int
    algorithm: str = ""
    radix: int = DIRECT
    rounds: int = 1
    bytes: int = 8
    fanout: int = 2
    hot_percent: int = 10
    seed: int = 0
    torus: "tuple[int, ...]" = ()

    def __post_init__(self) -> None:
        if self.operation not in ALGORITHMS:
            raise ModelError(f"no operation {self.operation!r}; there are: {', '.join(ALGORITHMS)}")
        known = ALGORITHMS[self.operation]
        if not self.algorithm:
            usable = [name for name in known if self.radix or name != "server"]
            object.__setattr__(self, "algorithm", usable[0])
        if self.algorithm not in known:
            raise ModelError(
                f"{self.operation} has no algorithm {self.algorithm!r}; it has: {', '.join(known)}"
            )
        limits = {
            "nodes": (1, NODES_MOST),
            "rounds": (1, 10**6),
            "bytes": (0, BYTES_MOST),
            "fanout": (1, NODES_MOST),
            "hot_percent": (0, 100),
            "seed": (0, 2**64 - 1),
        }
        for name, (least, most) in limits.items():
            if not least <= getattr(self, name) <= most:
                raise ModelError(f"{name} is {getattr(self, name)}; the simulator takes {least} to {most}")
        if self.radix == 1 or self.radix < 0:
            raise ModelError(
                f"a tree of servers with radix {self.radix} has no end: each server needs at least 2 below it"
            )
        if self.algorithm == "server" and self.radix == DIRECT:
            raise ModelError(
                f"{self.operation} by the server needs one; take --network server or servers, or --algorithm "
                f"{list(known)[1]}"
            )
        self._check_torus()
        self._check_size()

    def _check_torus(self) -> None:
        if not self.torus:
            return
        shape = text_of(self.torus)
        if self.operation != "neighbors":
            raise ModelError(f"the torus {shape} says which nodes are neighbors; {self.operation} has none")
        if not 1 <= len(self.torus) <= MOST_DIMENSIONS:
            raise ModelError(f"a torus has 1 to {MOST_DIMENSIONS} dimensions; got {shape}")
        if min(self.torus) < 1 or math.prod(self.torus) != self.nodes:
            raise ModelError(
                f"a torus of {shape} has {math.prod(self.torus)} nodes, and the simulation {self.nodes}"
            )

    def _check_size(self) -> None:
        most = self.messages()
        if most > MESSAGES_MOST:
            square = (
                "; their number grows with the square of the nodes"
                if self.algorithm == "ring" or self.operation == "all-to-all"
                else ""
            )
            raise ModelError(
                f"{self.operation} by {self.algorithm} on {self.nodes} nodes sends {most:,} messages{square}; the "
                f"simulator takes up to {MESSAGES_MOST:,}: choose fewer nodes or rounds"
            )

    @property
    def network(self) -> str:
        """Where the messages go."""
        if self.radix == DIRECT:
            return "direct links"
        return "one server" if self.radix >= self.nodes else f"servers of radix {self.radix}"

    def messages(self) -> int:
        """Return how many messages its nodes send at most, hops through servers not counted."""
        n, log2 = self.nodes, max(1, (self.nodes - 1).bit_length())
        few = 2 * max(1, len(self.torus))
        each = {
            "dissemination": log2,
            "binary-swap": 2 * log2,
            "ring": 2 * (n - 1),
            "tree": 2,
            "server": 2,
        }.get(self.algorithm, n - 1 if self.operation == "all-to-all" else few)
        return n * each * self.rounds


@dataclass(frozen=True)
class Result:
    """The result of one simulation."""

    case: Case
    time_ns: int  # until the last node was done
    mean_ns: float  # until a node was done, on average
    messages: int  # each hop of a message counts
    events: int  # processed: a message, and one that had waited at a port once more
    servers: int
    busiest_ns: int  # work of the server with the most
    seconds: float  # that the simulation took
    log: "list[tuple[int, int, int, int, bool]] | None" = None  # (time, place, sender, number, waited)

    @property
    def busy(self) -> float:
        """The share of the time in which the busiest server works."""
        return self.busiest_ns / self.time_ns if self.time_ns else 0.0


def simulate(
    case: Case, costs: "Costs | None" = None, noise: "Noise | None" = None, log: bool = False
) -> Result:
    """Simulate one case.

    Parameters
    ----------
    case
        The operation, on how many nodes, over what.
    costs
        Times of messages; None: the defaults.
    noise
        Added to each piece of work; None: nothing.
    log
        Whether the result lists every event: for small cases.

    Returns
    -------
    Result

    Examples
    --------
    >>> case = Case("barrier", nodes=1024, algorithm="dissemination")
    >>> found = simulate(case)
    >>> found.messages, found.events
    (10240, 10240)
    """
    costs, noise = costs or Costs(), noise or Noise()
    number = ALGORITHMS[case.operation][case.algorithm]
    ring = case.torus or (case.nodes,)
    torus = (*(1,) * (MOST_DIMENSIONS - len(ring)), *ring)
    buffer = b"".join(one.tobytes() for one in noise.series)
    begin = time.perf_counter()
    found: tuple[Any, ...] = engine.run(
        number,
        case.nodes,
        case.radix,
        case.rounds,
        case.bytes,
        case.fanout,
        case.hot_percent,
        case.seed,
        torus,
        costs.of_engine(),
        buffer,
        len(noise.series),
        log,
    )
    seconds = time.perf_counter() - begin
    time_ns, mean_ns, messages, events, servers, busiest_ns, entries = found
    return Result(case, time_ns, mean_ns, messages, events, servers, busiest_ns, seconds, entries)


# ---- which network, and from how many nodes on


RADIXES = (2, 4, 8, 16, 32, 64)
SQUARE_MOST = 2048  # nodes of a ring, in a comparison


@dataclass(frozen=True)
class Scaling:
    """One operation over each network and by each algorithm, at several numbers of nodes."""

    nodes: "list[int]"
    times_ns: "dict[str, list[float | None]]"  # by name of the candidate, by number of nodes
    busy: "list[float]"  # of the single server
    half_busy: "int | None"  # least nodes at which the single server works half of the time,
    tree_wins: "int | None"  # at which a tree of servers is faster than it,
    direct_wins: "int | None"  # and at which an algorithm over direct links is faster than any servers
    events: int


def scaling(case: Case, costs: "Costs | None" = None, noise: "Noise | None" = None) -> Scaling:
    """Simulate an operation of 2, 4, 8, … up to `case.nodes` nodes over all networks.

    Parameters
    ----------
    case
        Its operation has the algorithm `server`; its network and algorithm are not used.
    costs, noise
        As for `simulate`.

    Returns
    -------
    Scaling
    """
    known = ALGORITHMS[case.operation]
    if "server" not in known:
        able = ", ".join(name for name, algorithms in ALGORITHMS.items() if "server" in algorithms)
        raise ModelError(
            f"--scaling compares servers with direct links; {case.operation} has no server's way: {able}"
        )
    return _Sweep(case, costs or Costs(), noise or Noise()).run()


class _Sweep:
    def __init__(self, case: Case, costs: Costs, noise: Noise) -> None:
        self._case, self._costs, self._noise = case, costs, noise
        self._direct = [name for name in ALGORITHMS[case.operation] if name != "server"]
        self._found: dict[tuple[str, int, int], Result] = {}

    def run(self) -> Scaling:
        most = self._case.nodes
        nodes = [2**k for k in range(1, most.bit_length()) if 2**k <= most]
        nodes += [most] if not nodes or nodes[-1] != most else []
        times: dict[str, list[float | None]] = {"one server": [self._server(n, n).time_ns for n in nodes]}
        for radix in RADIXES:
            if radix < most:
                name = f"radix {radix}"
                times[name] = [self._server(n, radix).time_ns if n > radix else None for n in nodes]
        for name in self._direct:
            times[f"{name}, direct"] = [self._direct_ns(name, n) for n in nodes]
        return Scaling(
            nodes,
            times,
            [self._server(n, n).busy for n in nodes],
            self._least(nodes, lambda n: self._server(n, n).busy >= 0.5),
            self._least(nodes, lambda n: self._trees_ns(n) < self._server(n, n).time_ns),
            self._least(nodes, self._is_direct_faster),
            sum(found.events for found in self._found.values()),
        )

    def _simulate(self, nodes: int, radix: int, algorithm: str) -> Result:
        key = algorithm, nodes, radix
        if key not in self._found:
            case = replace(self._case, nodes=nodes, radix=radix, algorithm=algorithm)
            self._found[key] = simulate(case, self._costs, self._noise)
        return self._found[key]

    def _server(self, nodes: int, radix: int) -> Result:
        return self._simulate(nodes, max(2, radix), "server")

    def _trees_ns(self, nodes: int) -> float:
        return min((self._server(nodes, r).time_ns for r in RADIXES if r < nodes), default=math.inf)

    def _direct_ns(self, algorithm: str, nodes: int) -> "float | None":
        if algorithm == "ring" and nodes > SQUARE_MOST:
            return None  # its messages grow with the square of the nodes
        return self._simulate(nodes, DIRECT, algorithm).time_ns

    def _is_direct_faster(self, nodes: int) -> bool:
        found = [self._direct_ns(name, nodes) for name in self._direct]
        servers = min(self._server(nodes, nodes).time_ns, self._trees_ns(nodes))
        return min((ns for ns in found if ns is not None), default=math.inf) < servers

    @staticmethod
    def _least(nodes: "list[int]", is_true: "Any") -> "int | None":
        """Return the least number of nodes from which on it is true, to the end; None: it is false there.

        Between two of the numbers that were simulated it is found by bisection.
        """
        truths = [is_true(n) for n in nodes]
        if not truths[-1]:
            return None
        first = len(truths) - 1
        while first > 0 and truths[first - 1]:
            first -= 1
        if first == 0:
            return nodes[0]
        low, high = nodes[first - 1], nodes[first]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_true(middle) else (middle, high)
        return high
