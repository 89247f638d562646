# SPDX-License-Identifier: MIT
"""`--bind-to core`: each node on one of the cores this process may use, in turn."""

import os

from spcomm.launch.base.usage import UsageError

_TOPOLOGY = "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list"


def places() -> "list[int]":
    """The processors in the order in which nodes get them; the next node after the last one begins again.

    Where a core runs two hardware threads, the second ones come when every core has a node.
    """
    if not hasattr(os, "sched_getaffinity"):
        raise UsageError(
            "spcomm run: --bind-to core: this system cannot bind a process to a core; leave it out"
        )
    seen: dict[str, int] = {}
    turns: list[tuple[int, int]] = []
    for cpu in sorted(os.sched_getaffinity(0)):
        core = _core(cpu)
        seen[core] = seen.get(core, 0) + 1
        turns.append((seen[core], cpu))
    return [cpu for _turn, cpu in sorted(turns)]


def _core(cpu: int) -> str:
    """The identity that all hardware threads of a core share."""
    try:
        with open(_TOPOLOGY % cpu) as file:
            return file.read()
    except OSError:
        return str(cpu)


def describe(cpus: "list[int] | None", size: int, names: "object") -> str:
    """The text of --report-bindings: a line for each processor."""
    if cpus is None:
        return "spcomm: nodes are not bound: each runs wherever there is room (--bind-to core)\n"
    lines = [
        f"spcomm: processor {cpu}: {names.nodes(list(range(at, size, len(cpus))))}\n"
        for at, cpu in enumerate(cpus[:size])
    ]
    return "".join(lines)
