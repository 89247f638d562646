# SPDX-License-Identifier: MIT
"""`spcomm join`: this machine takes part in a room. It connects outwards only, and stays until Ctrl-C."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from argparse import SUPPRESS
from typing import TYPE_CHECKING

from spcomm.argument_parser import ArgumentParser, whole
from spcomm.launch.base import process
from spcomm.launch.base.usage import UsageError, complain
from spcomm.launch.base.wire import NONSENSE
from spcomm.launch.cmdline.values import MOST_NODES
from spcomm.launch.remote.framing import FrameError, one_line
from spcomm.launch.room.prompt import TRIES, code, place, spelt

if TYPE_CHECKING:
    from typing import Any

    from spcomm.launch.room.room_link import ClientLink

_FINISH_S = 1.0  # for the server to receive the end
_BOOTSTRAP = (
    "import sys\n"
    "sys.path[:1] = [sys.argv[1]]\n"
    "from spcomm.launch.room.remote_box import main\n"
    "del sys.path[0]\n"
    "main()\n"
)


def parser() -> ArgumentParser:
    """Return the parser of `spcomm join`."""
    made = ArgumentParser(
        "spcomm join",
        "spcomm join HOST[:PORT] [options]",
        "Lets programs of a room run on this machine, until Ctrl-C. HOST is the machine where spcomm serve --room runs "
        "and shows the code; spcomm join asks for it (or takes it from $SPCOMM_CODE). No machine connects to this one: "
        "it connects to HOST. Members of the room can run programs here, as you: join only rooms of people whom you "
        "trust.",
    )
    made.add_argument("hosts", nargs="+", metavar="HOST[:PORT]", help=SUPPRESS)
    made.add_rows(
        ("--name", "NAME", str, "the name of this machine there (default: its own name)"),
        ("--nodes", "N", whole(1, MOST_NODES, "nodes"), "how many nodes it takes (default: its cores)"),
    )
    made.set_defaults(name=os.uname().nodename, nodes=0)
    return made


def main(words: "list[str]") -> int:
    """Run until Ctrl-C, or the end of the room."""
    asked = parser().parse_args(words)
    from spcomm.launch.room.connect import EntryError, RefusedError

    try:
        if len(asked.hosts) > 1:
            raise UsageError(
                f"spcomm join: {asked.hosts[1]}: one host is enough; it asks for the code, which never stands on a "
                "command line"
            )
        where = place("spcomm join", asked.hosts[0])
        for _attempt in range(TRIES - 1 if os.isatty(0) else 0):
            try:
                return _join(where, asked.name, asked.nodes, code("spcomm join", spelt(where)))
            except RefusedError as error:
                print(f"spcomm join: {error}", file=sys.stderr)
        return _join(where, asked.name, asked.nodes, code("spcomm join", spelt(where)))
    except UsageError as error:
        print(error, file=sys.stderr)
        return error.code
    except EntryError as error:
        print(f"spcomm join: {error}", file=sys.stderr)
        return 125


def _join(where: "tuple[str, int]", name: str, slots: int, words: str) -> int:
    from spcomm._core import segments
    from spcomm.launch.base.loop import Loop
    from spcomm.launch.base.process import adopt_orphans
    from spcomm.launch.room import join_code
    from spcomm.launch.room.room_link import ClientLink

    key = join_code.key(words)
    loop = Loop()
    said = {"name": name, "slots": slots or max(1, int(segments.cores()))}
    link = ClientLink(loop, where, key, "join", said, renews=True)
    signals, _ = process.signal_pipe(
        (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
    )  # before the user reads that Ctrl-C ends it
    adopt_orphans()
    member = Member(link, where, key)
    loop.add(signals, lambda: member.signalled(os.read(signals, 512)))
    link.listen(loop, member.hear)
    try:
        while member.code is None:
            loop.turn()
    finally:
        member.close()
        loop.close()
    return member.code


class Member:
    """Work of a member."""

    def __init__(self, link: "ClientLink", where: "tuple[str, int]", key: bytes) -> None:
        self._link, self._where, self._key = link, where, key
        self._boxes: dict[subprocess.Popen, tuple[str, dict]] = {}  # their folders and their arguments
        self._has_joined = False
        self.code: int | None = None  # once it is over

    def hear(self) -> None:
        """Handle messages of the server."""
        try:
            found = self._link.receive()
            for message, _data in found or ():
                self._heard(*message)
        except (FrameError, *NONSENSE):
            _say(f"what listens at {spelt(self._where)} sent a malformed message")
            self.code = 125
            return
        if found is None and self.code is None:
            _say(self._link.why)
            self.code = 125

    def _heard(self, verb: str, *rest: "Any") -> None:
        if verb == "welcome":
            self._welcomed(*rest)
        elif verb == "members":
            _say(f"in the room: {', '.join(one_line(name, 80) for name in rest[0])}")
        elif verb == "run":
            self._run(rest[0])
        elif verb == "bye":
            _say("the room is closed")
            self.code = 0

    def _welcomed(self, theirs: dict, about: dict) -> None:
        from spcomm.launch.remote import versions

        if self._has_joined:  # it was away for too long, or the server was restarted
            _say(f"this machine is back in the room, as {about['name']}")
            return
        self._has_joined = True
        _error, warning = versions.compare(self._where[0], theirs)
        if warning:
            _say(f"warning: {warning}")
        _say(
            f"this machine is {about['name']} in the room at {spelt(self._where)}; its members can run programs here, "
            f"as {_user()}, until you press Ctrl-C"
        )

    def _run(self, about: dict) -> None:
        """Start a box. This process removes its folder if the box is killed."""
        folder = ""
        try:
            folder = tempfile.mkdtemp(prefix="spcomm-room-")
            package = os.path.dirname(os.path.abspath(sys.modules["spcomm"].__path__[0]))
            box = subprocess.Popen(
                [sys.executable, "-c", _BOOTSTRAP, package],
                stdin=subprocess.PIPE,
                cwd=folder,
                bufsize=0,
                process_group=0,  # Ctrl-C is for us
            )
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            self._link.send(["cannot", about["run"], f"cannot start a box ({error.strerror})"])
            return
        told = {name: about[name] for name in ("run", "box", "ticket")}
        self._boxes[box] = folder, dict(told)
        told["folder"] = os.path.realpath(folder)
        told.update(key=self._key.hex(), place=list(self._where), cluster=bool(about.get("cluster")))
        try:
            box.stdin.write(json.dumps(told).encode() + b"\n")
        except BrokenPipeError:
            pass  # it has ended: the server gives it up
        _say(f"{about['from']} runs {about['program']} here")

    def signalled(self, numbers: bytes) -> None:
        if any(number != signal.SIGCHLD for number in numbers):
            _say("left the room")
            self.code = 0
        self._reap()

    def _reap(self) -> None:
        for box in [box for box in self._boxes if box.poll() is not None]:
            about = self._boxes[box][1]
            self._forget(box)
            self._link.send(["ended", about["run"], about["box"]])  # a killed box cannot report its end

    def _forget(self, box: subprocess.Popen) -> None:
        from spcomm.launch.base.process import end_children
        from spcomm.launch.room.folder import remove

        box.stdin.close()
        box.wait()
        others = {other.pid for other in self._boxes if other is not box}
        end_children(others)  # its remains, if it was killed
        remove(self._boxes.pop(box)[0])

    def close(self) -> None:
        """End its boxes, and leave the room."""
        for box in self._boxes:
            box.stdin.close()
        for box in list(self._boxes):
            self._forget(box)
        self._link.finish(_FINISH_S)


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"user {os.geteuid()}"


def _say(text: str) -> None:
    complain(f"spcomm: {one_line(text, 10_000)}")
