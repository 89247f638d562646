# SPDX-License-Identifier: MIT
"""Parts of a box whose launcher is on another machine, as the launcher has described it."""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def plan(about: dict) -> "Any":
    """Find the program here as on the launcher's machine. Raises `UsageError`."""
    from spcomm.launch.base.usage import UsageError
    from spcomm.launch.cmdline import plan as plans
    from spcomm.launch.cmdline.options import Part

    part = Part()
    for name, value in about["part"].items():
        setattr(part, name, value)
    try:
        os.chdir(about["folder"])
    except OSError as error:
        raise UsageError(
            f"{about['folder']}: {error.strerror}; a program and its folder have to be at the same place on all hosts"
        ) from None
    found = plans.resolve(part)
    found.name, found.preload = part.name, part.preload
    found.environment = {} if about["bare"] else dict(os.environ)
    found.environment.update(about["environment"])
    found.group, found.box = about["group"], about["number"]
    found.indices = range(about["first"], about["first"] + about["nodes"])
    found.nodes = about["nodes"]
    found.takes_interrupt = bool(about.get("cluster"))
    return found


def segment(about: dict, nodes: int) -> "Any":
    from spcomm._core import segments as core

    began = dict(about["segment"])
    if "begun_ns" in about:
        age = max(0, time.time_ns() - about["begun_ns"])
        began["begun_ns"] = max(1, time.monotonic_ns() - age)
    return core.Segment(
        about["size"],
        oversubscribed=nodes + (2 if len(set(about["places"])) > 1 else 0) > core.cores(),
        **began,
    )


def gateway(about: dict, segment: "Any", secrets: bytes) -> "Any":
    from spcomm.launch.remote import transport_main
    from spcomm.launch.remote.transport_processes import TransportProcess

    number, address = about["number"], (about["address"][0], about["address"][1])

    def carry(wire: "Any") -> None:
        places = about["places"] if about.get("route") == "direct" else None
        transport_main.carry(
            wire, address, secrets, about["job"], number, segment.fd, about["link_timeout"], places
        )

    return TransportProcess(
        f"the gateway of box {number}", number, f"spcomm gw {number}", carry, segment.fd, []
    )


def cpus(about: dict) -> "list[tuple[int, ...]] | None":
    """Return processors by rank, in turn over the nodes of this box."""
    if not about["bind"]:
        return None
    from spcomm.launch.local import binding

    cpus = binding.places()
    return [cpus[max(0, rank - about["first"]) % len(cpus)] for rank in range(about["size"])]


def raise_limit() -> "tuple[int, int] | None":
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return None
    return soft, hard
