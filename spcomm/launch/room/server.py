# SPDX-License-Identifier: MIT
"""`spcomm serve`: a server for the runs of others, and with `--room` a room that machines join."""

import os
import signal
import socket
import sys
import time
from argparse import Namespace
from typing import TYPE_CHECKING

from spcomm.argument_parser import ArgumentParser, whole
from spcomm.launch.base import loopback, process
from spcomm.launch.base.usage import UsageError, complain
from spcomm.launch.cmdline import values
from spcomm.launch.room import join_code
from spcomm.launch.room.prompt import PORT, place
from spcomm.text import TIME_GRAMMAR, duration_s

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from spcomm.launch.base.loop import Loop

_BACKLOG = 1024
_CONNECTIONS = 1024  # of clients that know the code: members, runs, ways to boxes
_DESCRIPTORS = 4096  # two for each of them, one for each box of a run, strangers
_MEMBERS = 64
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def parser() -> ArgumentParser:
    """Return the parser of `spcomm serve`."""
    made = ArgumentParser(
        "spcomm serve",
        "spcomm serve [--room] [options]",
        "Serves runs of several boxes on this machine or, with --room, makes a room: machines join it with "
        "`spcomm join HOST`, and `spcomm run --room HOST` runs programs on all of them. Ctrl-C ends it.",
        f"TIME is {TIME_GRAMMAR}; --expires requires the unit.\n\nThe code is shown here and nowhere else; "
        f"scripts can set one in ${join_code.VARIABLE}.",
    )
    made.add_rows(
        ("--room", None, None,
         "let machines join. Members can run programs on each other's machines: give the code only to people you "
         "trust"),
        ("--listen", "ADDRESS[:PORT]", lambda text: place("spcomm serve: --listen", text, least=0),
         f"where others connect (default: 127.0.0.1:{PORT}; with --room every address of this machine, 0.0.0.0:{PORT})."
         " Port 0: any free port"),
        ("--expires", "TIME", _seconds,
         "how long the code admits members, as in 90m, 8h, 2d (default: 8h); members who have joined stay"),
        ("--max-members", "N", whole(1, _MEMBERS, "members"), "the largest number of members, 1 to 64 (default: 64)"),
        ("--link-timeout", "TIME", _link_timeout,
         "how long a box may be out of reach before its run fails (default: 30)"),
    )  # fmt: skip
    made.set_defaults(expires=8 * 3600.0, max_members=_MEMBERS, link_timeout=values.LINK_TIMEOUT_S)
    return made


def main(words: "list[str]") -> int:
    """Serve until Ctrl-C."""
    try:
        settings = parser().parse_args(words)
        given = os.environ.pop(join_code.VARIABLE, None) or None
        try:
            code = join_code.new() if given is None else join_code.read(given)
        except join_code.CodeError as error:
            raise UsageError(f"spcomm serve: {error} (in ${join_code.VARIABLE})") from None
        listener = _listen(settings)
    except UsageError as error:
        print(error, file=sys.stderr)
        return error.code
    try:
        return _serve(settings, listener, code)
    finally:
        listener.close()


def _link_timeout(text: str) -> float:
    return values.link_timeout("--link-timeout", text, "spcomm serve")


def _seconds(text: str) -> float:
    """Read a time as elsewhere, but require a unit: a user may mean 8 as hours."""
    found = duration_s(text)
    if not found or text[-1:].isdigit():
        raise UsageError(
            f"spcomm serve: --expires {text}: must be a time above 0 with its unit, as in 90m or 8h; "
            f"a time is {TIME_GRAMMAR}"
        )
    return found


def _listen(settings: Namespace) -> "socket.socket":
    from spcomm.launch.remote import handshake

    host, port = settings.listen or (loopback.ANYWHERE if settings.room else loopback.LOOPBACK, PORT)
    if not_reached := loopback.trouble((host, port)):
        if host != loopback.ANYWHERE:
            raise UsageError(f"spcomm serve: {not_reached}")
        _say(not_reached)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    os.set_inheritable(listener.fileno(), False)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        import errno

        if error.errno == errno.EADDRINUSE:
            why = f"port {port} is taken, perhaps by another spcomm serve; give another one: --listen {host}:{port + 1}"
        else:
            why = f"{host}:{port} cannot be listened at on this machine ({error.strerror or error})"
        raise UsageError(f"spcomm serve: {why}") from None
    handshake.require("spcomm serve", listener)
    return listener


def _serve(settings: Namespace, listener: "socket.socket", code: str) -> int:
    from spcomm.launch.base.loop import Loop

    most = min(_CONNECTIONS, _raise_limit() // 4)
    signals, _ = process.signal_pipe(_ENDING)
    loop, ended = Loop(), []
    expires = time.time() + settings.expires
    about = {
        "room": settings.room,
        "expires": expires,
        "most": settings.max_members,
        "link_timeout": settings.link_timeout,
    }
    loop.add(signals, lambda: ended.append("signal"))
    _announce(settings, listener.getsockname(), code, expires)
    serve(loop, listener, code, about, _say, most, lambda _count: bool(ended))
    _say("the room is closed" if settings.room else "the server has ended")
    return 0


def serve(
    loop: "Loop",
    listener: "socket.socket",
    code: str,
    about: dict,
    say: "Callable[[str], object]",
    most: int,
    is_over: "Callable[[int], bool]",
) -> None:
    """Serve until that is over: `is_over` gets the number of connections that know the code, of at most `most`."""
    from spcomm._core import net, segments
    from spcomm.launch.remote.handshake import ROOM, Gate
    from spcomm.launch.remote.transport_main import Runner
    from spcomm.launch.room.broker import Broker

    secrets = {(ROOM, 0): join_code.key(code)}
    server = net.Server(about["link_timeout"], disable=segments.disable_mask(), keep_running=True)
    broker = Broker(loop, server, secrets, about, say)
    full = lambda: broker.count >= most  # noqa: E731
    Gate(loop, listener, secrets, server.adopt, broker.welcome, full).open()
    runner = Runner(server.run)
    loop.add(runner.fileno(), lambda: None)
    while not runner.over and not is_over(broker.count):
        loop.turn()
        broker.flush()
    broker.part()
    loop.remove(listener.fileno())
    server.stop()
    while not runner.over:
        loop.turn()
    broker.close()  # after the server, which reports the ends of jobs to it
    runner.result()


def _announce(settings: Namespace, address: "tuple[str, int]", code: str, expires: float) -> None:
    host, port = address
    name = os.uname().nodename if host == "0.0.0.0" else host
    shown = [name] if host != "0.0.0.0" else [name, *_own_addresses()]
    where = " or ".join(one if port == PORT else f"{one}:{port}" for one in shown)
    target = where.split(" or ")[0]
    today = time.localtime()[:3] == time.localtime(expires)[:3]
    until = time.strftime("%H:%M" if today else "%H:%M on %Y-%m-%d", time.localtime(expires))
    what = "A room" if settings.room else "A server"
    lines = [f"{what} at {where}. Its code, good until {until}:", "", f"    {code}", ""]
    if settings.room:
        lines += [
            f"On each machine:   spcomm join {target}",
            f"To run a program:  spcomm run --room {target} program.py",
            "Members can run programs on each other's machines: give the code only to people you trust.",
        ]
    else:
        lines += [f"To use it:  spcomm run --boxes 2 --server {target} program.py"]
    lines += ["Ctrl-C ends it."]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _own_addresses() -> "list[str]":
    """Return the address from which this machine reaches others. Sends nothing."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.connect(("192.0.2.1", 9))  # an address for examples: only the route to it matters
        return [probe.getsockname()[0]]
    except OSError:
        return []
    finally:
        probe.close()


def _raise_limit() -> int:
    """Raise the limit on descriptors."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return _DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def _say(text: "Any") -> None:
    complain(f"spcomm: {text}")
