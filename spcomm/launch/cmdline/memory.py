# SPDX-License-Identifier: MIT
"""Memory limit of a run's message buffers: a quarter of the memory that this process may use.

That is the machine's memory, limited by its control group and by `ulimit -v`. All buffers of all groups count: shared
memory, of which each box has as much as if all nodes were there, and the private queues of nodes. They take pages
only as they are used, so an excess would show late, through the kernel's killer. Sizes that the user leaves open are
made small enough; requested sizes that do not fit are refused before anything starts.
"""

from typing import TYPE_CHECKING

from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.groups import Group
from spcomm.launch.cmdline.options import Options
from spcomm.launch.cmdline.values import size_text

if TYPE_CHECKING:
    from typing import Any

_SHARE = 4
_SIZES = ("slots", "ring", "arena", "scratch", "queue_limit")


def sizes(segments: "Any", options: Options, groups: "list[Group]", disable: int) -> "dict[str, int]":
    """Return the sizes for every group's segment. Raises `UsageError` if the requested sizes exceed the limit."""
    # To the core 0 means the default, and less than a page means none; to a user, 0 means none.
    asked = {name: value or 1 for name, value in options.buffers.items()}
    worlds = [group.size for group in groups for _box in range(group.boxes)]  # the nodes of each segment
    budget = segments.memory() // _SHARE
    plans = [segments.plan(size, disable=disable, **asked) for size in worlds]
    if len(worlds) > 1 and _total(plans, worlds) > budget:
        # Planned alone, each segment would take the whole limit; planned as one group of all nodes, they share it.
        parts = sum(worlds) + len(worlds)
        found = segments.plan(min(parts, segments.NODES_MAX), disable=disable, **asked)
        times = -(-parts // segments.NODES_MAX)
        chosen = {name: max(found[name] // times, segments.LIMITS[name][0], 1) for name in _SIZES}
        asked = {**chosen, **asked}
        plans = [segments.plan(size, disable=disable, **asked) for size in worlds]
    if set(options.buffers) - {"fanin"} and _total(plans, worlds) > budget:
        _refuse(segments, options, sum(group.size for group in groups), worlds, plans)
    return asked


def _total(plans: "list[dict[str, int]]", worlds: "list[int]") -> int:
    return sum(plan["bytes"] + _count("queue_limit", size) * plan["queue_limit"]
               for plan, size in zip(plans, worlds, strict=True))  # fmt: skip


def _count(name: str, nodes: int) -> int:
    """Return the growth of the total for each byte, or slot, of an option."""
    return {"queue_limit": 2 * nodes, "slots": 64 * (nodes + 1) ** 2}.get(name, nodes + 1)


def _refuse(
    segments: "Any", options: Options, nodes: int, worlds: "list[int]", plans: "list[dict[str, int]]"
) -> None:
    """Blame the option that takes most, and give its maximum."""
    from spcomm.text import counted, rounded_size

    memory, total = segments.memory(), _total(plans, worlds)
    taken = {name: value * sum(_count(name, size) for size in worlds)
             for name, value in options.buffers.items() if name != "fanin"}  # fmt: skip
    name = max(taken, key=taken.__getitem__)
    each = sum(_count(name, size) for size in worlds)
    room = (memory // _SHARE - (total - taken[name])) // each
    least = segments.LIMITS[name][0]
    option = "--" + name.replace("_", "-")
    cure = f"{option} {_rounded(name, room)} or less" if room >= max(least, 1) else "fewer nodes (-n)"
    raise UsageError(
        f"spcomm run: {option} {size_text(name, options.buffers[name])}: the message buffers of "
        f"{counted(nodes, 'node')} could take {rounded_size(total)}, and may take {rounded_size(memory // _SHARE)}, a "
        f"quarter of the memory that {_whence(memory)} ({rounded_size(memory)}); try {cure}, or leave {option} out"
    )


def _whence(memory: int) -> str:
    """Say what limits the memory, where that is not the machine or the container."""
    import resource

    return "ulimit -v allows" if resource.getrlimit(resource.RLIMIT_AS)[0] == memory else "there is here"


def _rounded(name: str, value: int) -> str:
    """Round down to a number that is easy to write."""
    if name == "slots":
        return str(value)
    shift = max(0, (value.bit_length() - 3) // 10 * 10)
    return size_text(name, value >> shift << shift)
