# SPDX-License-Identifier: MIT
"""What a benchmark declares: rows of the table, and what each is to reach."""

import importlib
import pkgutil
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from spcomm.bench import cases

PEERS = "peers"  # Goal.against: the fastest peer of the row

MICROSECONDS = ("µs", 1e6)
MILLISECONDS = ("ms", 1e3)


@dataclass(frozen=True)
class Goal:
    """What spcomm is to reach: at most `ratio` times what `against` takes, and at most `seconds`.

    `against` is `PEERS`, the fastest of the peers, or the key of another row, whose time with spcomm counts.
    """

    ratio: float
    against: str = PEERS
    seconds: float | None = None

    def __str__(self) -> str:
        limit = "" if self.seconds is None else f", {self.seconds * 1e6:.0f} µs"
        return f"≤ {self.ratio:g}{limit}"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    key : unique name, also in the JSON.
    title : what the reader sees.
    work : a function of `programs/<program>_*.py`, timed inside the nodes; or "launch": the whole program is timed;
        or "diagnose": from a deadlock to its report.
    nodes : number of nodes.
    parameters : keyword arguments of that function.
    goal : what is to be reached, if anything.
    computing : processes that compute all the time, beside the nodes.
    environment : extra environment variables (for spcomm's own switches).
    peers : False for rows that only spcomm can run.
    unit : name and factor from seconds.
    program : where that function is, "works", "arrays" or "numbers".
    percentile : of all single times of all rounds, to be told below the table; 0: none.
    """

    key: str
    title: str
    work: str
    nodes: int
    parameters: dict[str, Any] = field(default_factory=dict)
    goal: Goal | None = None
    computing: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    peers: bool = True
    unit: tuple[str, float] = MICROSECONDS
    program: str = "works"
    percentile: int = 0


def benchmarks() -> dict[str, ModuleType]:
    """All benchmarks, by name, in the order in which the table shows them."""
    names = sorted(module.name for module in pkgutil.iter_modules(cases.__path__))
    modules = {name: importlib.import_module(f"{cases.__name__}.{name}") for name in names}
    return dict(sorted(modules.items(), key=lambda item: item[1].ORDER))


def summary(module: ModuleType) -> str:
    """The first line of a benchmark's docstring."""
    return (module.__doc__ or "").strip().partition("\n")[0]
