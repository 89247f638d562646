# SPDX-License-Identifier: MIT
"""`--bind-to`: binds each node to one of the cores this process may use, in turn, or to the given processors."""

import os

from spcomm.launch.base.usage import UsageError
from spcomm.text import ranges_text

_TOPOLOGY = "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list"


def places(sets: "tuple[tuple[int, ...], ...]" = ()) -> "list[tuple[int, ...]]":
    """Return the processors of each node; after the last ones, the list starts again.

    Without `sets` each node has one. If a core runs two hardware threads, each core gets one node before any gets two.
    """
    if not hasattr(os, "sched_getaffinity"):
        raise UsageError("spcomm run: --bind-to: this system cannot bind a process to a core; leave it out")
    allowed = os.sched_getaffinity(0)
    missing = {cpu for cpus in sets for cpu in cpus} - allowed
    if missing:
        raise UsageError(
            f"spcomm run: --bind-to: processor {min(missing)} is not one that this process may use; these are "
            f"{ranges_text(sorted(allowed))}"
        )
    if sets:
        return list(sets)
    seen: dict[str, int] = {}
    turns: list[tuple[int, int]] = []
    for cpu in sorted(allowed):
        core = _core(cpu)
        seen[core] = seen.get(core, 0) + 1
        turns.append((seen[core], cpu))
    return [(cpu,) for _turn, cpu in sorted(turns)]


def _core(cpu: int) -> str:
    """Return the identity that all hardware threads of a core share."""
    try:
        with open(_TOPOLOGY % cpu) as file:
            return file.read()
    except OSError:
        return str(cpu)


def describe(cpus: "list[tuple[int, ...]] | None", size: int, names: "object") -> str:
    """Return the text of --report-bindings: a line for each place."""
    if cpus is None:
        return "spcomm: nodes are not bound: each runs wherever there is room (--bind-to core)\n"
    lines = [
        f"spcomm: processor{'s' if len(place) > 1 else ''} {ranges_text(place)}: "
        f"{names.nodes(list(range(at, size, len(cpus))))}\n"
        for at, place in enumerate(cpus[:size])
    ]
    return "".join(lines)
