# SPDX-License-Identifier: MIT
"""Parts of a box whose launcher is on another machine, as the launcher has described it."""

import os
import time
from typing import TYPE_CHECKING

_LEAVE_S = 1.0  # to connect to the server once more

if TYPE_CHECKING:
    from typing import Any


def plan(about: dict) -> "Any":
    """Find a program here as on the launcher's machine. Raises `UsageError`."""
    from spcomm.launch.base.record import replace
    from spcomm.launch.base.usage import UsageError
    from spcomm.launch.cmdline import plan as plans
    from spcomm.launch.cmdline.options import Part
    from spcomm.mpi import bindings

    part = Part(**about["part"])
    try:
        os.chdir(about["folder"])
    except OSError as error:
        raise UsageError(
            f"{about['folder']}: {error.strerror}; a program and its folder have to be at the same place on all hosts"
        ) from None
    environment = {} if about["bare"] else dict(os.environ)
    found = replace(
        plans.with_environment(plans.resolve(part), {**environment, **about["environment"]}),
        folder=about["folder"],
        group=about["group"],
        indices=about["indices"],
        nodes=len(about["indices"]),
        takes_interrupt=bool(about.get("cluster")),
    )
    bindings.check(found)
    if not about["debugged"]:
        return found
    from spcomm.launch.cmdline.debugging import command

    how = command(about["debug"]["tool"], found)
    return replace(found, debugged=frozenset(about["debugged"]), debug={**about["debug"], "command": how})


def group(about: dict, busy: bool) -> "Any":
    """Make a group, with its memory of this box. `busy`: the processes here share cores."""
    from spcomm._core import segments as core
    from spcomm.launch.cmdline.groups import Group

    began = dict(about["segment"])
    if "begun_ns" in about:
        age = max(0, time.time_ns() - about["begun_ns"])
        began["begun_ns"] = max(1, time.monotonic_ns() - age)
    made = Group(about["number"], about["first"], about["size"], about["places"])
    made.segments.extend([None] * made.boxes)
    made.segments[about["box"]] = core.Segment(about["size"], oversubscribed=busy, **began)
    return made


def is_busy(about: dict) -> bool:
    """Whether the nodes and gateways here are more than the cores."""
    from spcomm._core import segments as core

    nodes = sum(len(program["indices"]) for program in about["programs"])
    gateways = sum(bool(group["places"]) for group in about["groups"])
    return nodes + (gateways + 1 if gateways else 0) > core.cores()


def gateways(about: dict, groups: "list[Any]", secrets: bytes) -> "list[Any]":
    """Start the gateway of each group that has other boxes. `secrets`: theirs, one after another."""
    from spcomm.launch.remote import transport_main
    from spcomm.launch.remote.transport_processes import TransportProcess

    memory = [
        group.segments[of_group["box"]] for group, of_group in zip(groups, about["groups"], strict=True)
    ]
    found = []
    for group, of_group in zip(groups, about["groups"], strict=True):
        if group.boxes == 1:
            continue
        size = of_group["secret_bytes"]
        own, secrets = secrets[:size], secrets[size:]
        box, job = of_group["box"], of_group["job"]
        address = about["address"][0], about["address"][1]
        segment = group.segments[box]
        others = [other for other in memory if other is not segment]
        places = group.places if about["route"] == "direct" else None
        via = of_group.get("via")

        def carry(
            wire: "Any",
            own: bytes = own,
            job: int = job,
            box: int = box,
            address: "tuple[str, int]" = address,
            segment: "Any" = segment,
            places: "list[int] | None" = places,
            via: "str | None" = via,
        ) -> None:
            timeout = about["link_timeout"]
            if via is None:
                transport_main.carry(wire, address, own, job, box, segment.fd, timeout, places)
                return
            from spcomm.launch.remote import mpi_link

            orders = (address, own, job, box, timeout, places, f"spcomm gw {box}")
            mpi_link.stand_in(wire, segment.fd, via, box, orders)

        label = f"spcomm gw {box}" if via is None else f"spcomm mpi {box}"
        name = f"the gateway of box {box}"
        found.append(TransportProcess(name, box, label, carry, segment.fd, others, group.number))
    return found


def take_leave(about: dict, secrets: bytes) -> None:
    """Tell the server that the launcher's command here has ended: at the other end the launcher may not notice."""
    from spcomm._core.errors import SpcommError
    from spcomm.launch.remote import handshake, transport_main

    for group in about["groups"]:
        if "job" not in group:  # all of it is here, so there is no server
            continue
        own, secrets = secrets[: handshake.SECRET_BYTES], secrets[group["secret_bytes"] :]
        box = group["box"] + transport_main.FAREWELL
        try:
            sock, _session = handshake.enter(tuple(about["address"]), own, group["job"], box, _LEAVE_S)
            sock.close()
        except (OSError, SpcommError):  # the launcher has ended, too
            pass


def cpus(about: dict, groups: "list[Any]") -> "list[tuple[int, ...]] | None":
    """Return processors by index, in turn over the nodes of this box."""
    if not about["bind"]:
        return None
    from spcomm.launch.local import binding

    cpus = binding.places()
    here = sorted(index for program in about["programs"] for index in program["indices"])
    turn = {index: at for at, index in enumerate(here)}
    last = max(group.indices.stop for group in groups)
    return [cpus[turn.get(index, 0) % len(cpus)] for index in range(last)]


def raise_limit() -> "tuple[int, int] | None":
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return None
    return soft, hard
