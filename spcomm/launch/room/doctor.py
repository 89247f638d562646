# SPDX-License-Identifier: MIT
"""`spcomm doctor`: from this machine to a server, hop by hop, until one fails."""

import os
import socket
import sys
import time
from argparse import SUPPRESS

from spcomm.argument_parser import ArgumentParser
from spcomm.launch.base import loopback
from spcomm.launch.base.usage import UsageError
from spcomm.launch.room import join_code, prompt
from spcomm.text import counted

_NOT_ASKED = "not tried: --code asks for it, and compares the versions"
_Place = tuple[str, int]


class _HopFailed(Exception):
    """The step that failed: (the finding, the advice)."""


def parser() -> ArgumentParser:
    """Return the parser of `spcomm doctor`."""
    made = ArgumentParser(
        "spcomm doctor",
        "spcomm doctor HOST[:PORT] [--code]",
        "Checks each step of the connection to the machine where spcomm serve runs, and reports which one fails: the "
        "name, the port, a firewall in between, the program that listens there, its version and, with --code (or "
        f"$SPCOMM_CODE), the code. The port is {prompt.PORT} if none is given.",
        "The exit code is 0 if every step succeeds, and 1 otherwise.",
    )
    made.add_argument("host", metavar="HOST[:PORT]", help=SUPPRESS)
    made.add_argument("--code", action="store_true", help="ask for the code, and check it, too")
    return made


def main(words: "list[str]") -> int:
    """One line for each hop, and the exit code."""
    asked = parser().parse_args(words)
    try:
        return _go(prompt.place("spcomm doctor", asked.host), asked.code or join_code.VARIABLE in os.environ)
    except UsageError as error:
        print(error, file=sys.stderr)
        return error.code


def _go(where: _Place, asks: bool) -> int:
    address = where
    for name, hop in (("name", _name), ("port", _port), ("server", _server), ("code", _code)):
        try:
            address, found = hop(where, address, asks)
        except _HopFailed as ill:
            found, advice = ill.args
            print(f"{name:<8}WRONG   {found}\n        try:    {advice}", flush=True)
            return 1
        print(f"{name:<8}{'ok' if found else '-':<8}{found or _NOT_ASKED}", flush=True)
    return 0


def _name(where: _Place, _address: _Place, _asks: bool) -> "tuple[_Place, str]":
    try:
        found = socket.getaddrinfo(where[0], where[1], socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter: no name at all
        raise _HopFailed(
            f"{where[0]} is not a name that this machine knows ({getattr(error, 'strerror', None) or error})",
            "its address instead, which spcomm serve shows, as in 192.168.1.17",
        ) from None
    address = found[0][4][0]
    return (address, where[1]), f"{where[0]} is {address}" if address != where[
        0
    ] else f"{address} is an address"


def _port(_where: _Place, address: _Place, _asks: bool) -> "tuple[_Place, str]":
    from spcomm.launch.room.connect import CONNECT_S

    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    begun = time.monotonic()
    try:
        sock.settimeout(CONNECT_S)
        sock.connect(address)
        return address, f"{prompt.spelt(address)} answers, after {1000 * (time.monotonic() - begun):.1f} ms"
    except ConnectionRefusedError:
        raise _HopFailed(
            f"{address[0]} answers, but nothing listens at port {address[1]}",
            "whether spcomm serve runs there, with --room or --listen, and which port it shows",
        ) from None
    except TimeoutError:
        raise _HopFailed(
            f"{prompt.spelt(address)} does not answer within {CONNECT_S:g} s: the machine is off or in another "
            "network, or a firewall drops the packets",
            f"put both into the same network, and let that machine's firewall admit TCP port {address[1]}",
        ) from None
    except OSError as error:
        advice = "whether both machines are in the same network"
        if loopback.trouble(address):
            advice = f"{loopback.REMEDY}: the loopback device of this machine is down"
        raise _HopFailed(f"no route to {address[0]} ({error.strerror or error})", advice) from None
    finally:
        sock.close()


def _server(_where: _Place, address: _Place, _asks: bool) -> "tuple[_Place, str]":
    """An answer of HELLO comes from a server of spcomm; this step does not check the code yet."""
    from spcomm._core import net
    from spcomm.launch.remote import handshake
    from spcomm.launch.room import connect

    key = join_code.key(join_code.new())
    try:
        sock, talk = handshake.meet(address, key, handshake.ROOM, 0, connect.CONNECT_S)
    except OSError as error:
        raise _HopFailed(connect.unreachable(address, error), _elsewhere(address)) from None
    sock.close()
    outcome = talk.outcome
    if outcome in (handshake.ACCEPTED, handshake.REFUSED):
        return address, f"is an spcomm server and speaks protocol {net.VERSION}, as this machine does"
    raise _HopFailed(connect.refusal(address, talk), _advice(outcome, address))


def _advice(outcome: int, address: _Place) -> str:
    from spcomm.launch.remote import handshake

    if outcome == handshake.OTHER_VERSION:
        return "the newer version on the older machine: python -m pip install -U WHEEL"
    if outcome == handshake.OTHER_BYTE_ORDER:
        return "a server on a machine of the same kind as this one"
    if outcome in (handshake.FULL, handshake.CLOSED, handshake.LATE):
        return f"again in a moment, as it may be overloaded; or {_elsewhere(address)}"
    return _elsewhere(address)


def _elsewhere(address: _Place) -> str:
    return f"the port that spcomm serve shows; another program has {address[1]}"


def _code(where: _Place, address: _Place, asks: bool) -> "tuple[_Place, str]":
    if not asks:
        return address, ""
    from spcomm.launch.remote import versions
    from spcomm.launch.room import connect

    try:
        code = prompt.code("spcomm doctor", prompt.spelt(where))
    except UsageError as error:
        if error.code > 128:  # a signal
            raise
        raise _HopFailed(
            str(error).removeprefix("spcomm doctor: "), "the six words as spcomm serve shows them"
        ) from None
    try:
        frames = connect.enter(address, join_code.key(code))
    except connect.EntryError as error:
        raise _HopFailed(
            str(error), "the code once more, or a new one: spcomm serve shows one when it starts"
        ) from None
    try:
        _welcome, theirs, about = connect.ask(frames, ["hello", "look", versions.mine(), {}], address)
    except connect.EntryError as error:
        raise _HopFailed(str(error), "a new code: spcomm serve shows one when it starts") from None
    finally:
        frames.close()
    error, warning = versions.compare(where[0], theirs)
    if error or warning:
        raise _HopFailed(error or warning, "the same versions on both machines")
    there = about["members"]
    what = f"a room with {counted(len(there), 'member')}" if about["room"] else "a server without a room"
    return address, f"is right, and the versions are the same; it is {what}" + (
        f": {', '.join(there)}" if there else ""
    )
