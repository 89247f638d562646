# SPDX-License-Identifier: MIT
"""The loopback device: processes of one machine that are in different boxes, servers and pages are reached by it."""

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LOOPBACK = "127.0.0.1"
ANYWHERE = "0.0.0.0"
REMEDY = "`ip link set lo up`"
_PORT = 9  # a port: it does not matter which, as nothing is sent


def is_of_this_machine(host: str) -> bool:
    """Whether an address is one of the loopback device."""
    return host == "localhost" or host.startswith("127.")


def trouble(address: "Sequence[str | int]") -> str:
    """Return why this machine cannot reach a socket of its own that listens at this address; empty: it can."""
    host = str(address[0])
    if host == ANYWHERE:
        host = LOOPBACK
    if not is_of_this_machine(host):
        return ""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.connect((host, _PORT))  # UDP: looks up the way there, and sends nothing
    except OSError as error:
        return (
            f"this machine cannot reach itself at {host} ({error.strerror or error}): its loopback device is down; "
            f"try {REMEDY}"
        )
    finally:
        probe.close()
    return ""
