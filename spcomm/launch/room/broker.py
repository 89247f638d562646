# SPDX-License-Identifier: MIT
"""Who is in a room, or at a server: members, runs, and the ways between a run and its boxes.

Everybody here has proved that it knows the code. The first frame of a connection says what it is for:

========  ============================================================================================
`join`    a member: it is told of runs that want a box of it, for as long as it stays
`run`     a run: it asks who is there, and gets a job of the server; its end is the run's end
`reach`   one end of the way between a run and a box, and `box` the other; what one says the other hears. Each shows
          the ticket that nobody but the run, or that member, was given
`look`    a doctor: it is told who we are
========  ============================================================================================
"""

import hmac
import os
import time
from collections import deque

from spcomm._core.errors import SpcommError
from spcomm.launch.remote import versions
from spcomm.launch.remote.framing import MOST, NONSENSE, FrameError, one_line
from spcomm.launch.remote.handshake import SECRET_BYTES
from spcomm.launch.room.connect import differ, keep_alive
from spcomm.launch.room.mac_framing import Sealed
from spcomm.text import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable
    from typing import Any

    from spcomm._core import net
    from spcomm.launch.base.loop import Loop
    from spcomm.launch.remote.tls import Session

_HELLO_S = 10.0  # for a connection that is in to say what for
_BOXES_S = 30.0  # for members to answer a run
_BOXES_MOST = 64
_NAME_MOST = 64
RUNS_MOST = 16


class Visitor:
    """One connection."""

    def __init__(self, frames: Sealed, address: str) -> None:
        self.frames = frames
        self.fd = frames.reading
        self.address = address
        self.role = ""
        self.name = ""
        self.slots = 1
        self.run: Run | None = None
        self.box = -1
        self.partner: Visitor | None = None  # the other end of a way
        self.early: list[tuple[list, bytes]] = []  # said before there was one
        self.ending = False  # it is closed once it has taken what is kept for it


class Run:
    """One run that wants boxes, or a job, of us."""

    def __init__(self, runner: Visitor, about: dict) -> None:
        self.runner = runner
        self.token = os.urandom(16).hex()
        self.group = int(about["group"])
        self.program = one_line(about["program"], 200)
        self.is_room = bool(about["room"])
        self.wanted = max(1, int(about.get("members") or 1))
        self.job = 0
        self.boxes = 0
        self.offered: dict[str, Visitor] | None = None  # who was there when it was told, and decides
        self.begun = False
        self.is_over = False  # it was told why it cannot go on
        self.members: list[Visitor] = []  # by box
        self.ends: dict[tuple[str, int], Visitor] = {}
        self.tickets: dict[tuple[str, int], str] = {}  # for these ends


class House:
    """All of it; one thread. `flush` is called after each turn of the loop."""

    def __init__(
        self,
        loop: "Loop",
        server: "net.Server",
        secrets: "dict[tuple[int, int], bytes]",
        about: "dict[str, Any]",
        say: "Callable[[str], None]",
    ) -> None:
        """`secrets`: of the gate, by job and box. `about`: room, expires, most (members), link_timeout."""
        self._loop = loop
        self._server = server
        self._secrets = secrets
        self._about = about
        self._say = say
        self.visitors: dict[int, Visitor] = {}
        self._members: dict[str, Visitor] = {}
        self._runs: dict[str, Run] = {}
        self._ended: deque[tuple[int, str | None]] = deque()
        self._news, self._tell = os.pipe()
        os.set_blocking(self._news, False)
        server.on_end = self._job_ended
        loop.add(self._news, self._hear_server)

    # Connections

    def welcome(self, sock: "_socket.socket", session: "Session | None") -> None:
        """One more that has proved itself."""
        try:
            keep_alive(sock)
            frames = Sealed(sock, session)
        except OSError:  # it is gone again
            sock.close()
            return
        visitor = Visitor(frames, frames.peer[0])
        self.visitors[visitor.fd] = visitor
        self._listen(visitor)
        self._loop.at(f"hello {visitor.fd}", _HELLO_S, lambda: self._leave(visitor))

    def _listen(self, visitor: Visitor) -> None:
        self._loop.add(visitor.fd, lambda: self._hear(visitor))

    def _hear(self, visitor: Visitor) -> None:
        try:
            frames = visitor.frames.receive()
            if frames is None:
                self._leave(visitor)
                return
            for message, data in frames:
                self._heard(visitor, message, data)
        except (FrameError, SpcommError, *NONSENSE):
            self._leave(visitor)  # it knows the code, and does not speak our language

    def _heard(self, visitor: Visitor, message: list, data: bytes) -> None:
        if visitor.ending or visitor.fd not in self.visitors:
            return
        if visitor.role in ("reach", "box"):
            if visitor.partner is None:
                visitor.early.append((message, data))
            else:
                visitor.partner.frames.send(message, data)
        elif visitor.role == "":
            _hello, purpose, theirs, about = message
            self._loop.forget(f"hello {visitor.fd}")
            self._enter(visitor, str(purpose), dict(theirs), dict(about))
        elif visitor.role == "run" and message[0] == "begin" and visitor.run is not None:
            self._begin(visitor.run, message[1])
        elif visitor.role == "join" and message[0] == "cannot":
            run = self._runs.get(message[1])
            if run is not None and visitor in run.members:
                self._over(run, f"{visitor.name}: {one_line(message[2], 300)}")

    def _enter(self, visitor: Visitor, purpose: str, theirs: dict, about: dict) -> None:
        visitor.name = one_line(about.get("name") or visitor.address, _NAME_MOST)
        if purpose in ("reach", "box"):
            self._way(visitor, purpose, about)
            return
        if purpose not in ("join", "run", "look"):
            raise ValueError(purpose)
        why = differ(theirs) if purpose != "look" else ""
        if time.time() >= self._about["expires"]:
            at = time.strftime("%H:%M", time.localtime(self._about["expires"]))
            why = f"that code has expired: it was good until {at}; whoever serves starts anew to get another"
        if not why and purpose != "look":
            why = self._join(visitor, about) if purpose == "join" else self._ask(visitor, about)
        if why:
            self._refuse(visitor, why)
        elif purpose == "look":
            room = {"room": self._about["room"], "members": list(self._members), "runs": len(self._runs)}
            visitor.frames.send(["welcome", versions.mine(), room])
            visitor.ending = True

    def _refuse(self, visitor: Visitor, why: str) -> None:
        visitor.frames.send(["refused", why])
        visitor.ending = True

    def _leave(self, visitor: Visitor) -> None:
        """A connection is over."""
        if self.visitors.pop(visitor.fd, None) is None:
            return
        self._loop.forget(f"hello {visitor.fd}")
        self._loop.remove(visitor.fd)
        self._loop.remove(visitor.frames.writing)
        visitor.frames.close()
        if visitor.partner is not None:
            visitor.partner.ending = True  # what was said to it before still arrives
        if visitor.role == "join":
            del self._members[visitor.name]
            self._say(f"{visitor.name} has left ({counted(len(self._members), 'member')})")
            self._tell_members()
            for run in list(self._runs.values()):
                if visitor in run.members and ("box", run.members.index(visitor)) not in run.ends:
                    self._over(run, f"{visitor.name} has left the room")
        elif visitor.role == "run" and visitor.run is not None:
            self._forget(visitor.run)

    # Members

    def _join(self, visitor: Visitor, about: dict) -> str:
        """Why not; empty: it is a member."""
        if not self._about["room"]:
            return "this server is no room: it was started without --room"
        if len(self._members) >= self._about["most"]:
            return f"the room is full: it has {counted(len(self._members), 'member')}, and is allowed no more"
        name, number = visitor.name, 1
        while visitor.name in self._members:
            number += 1
            visitor.name = f"{name}-{number}"
        visitor.role, visitor.slots = "join", min(1024, max(1, int(about["slots"])))
        self._members[visitor.name] = visitor
        visitor.frames.send(
            ["welcome", versions.mine(), {"name": visitor.name, "expires": self._about["expires"]}]
        )
        self._say(
            f"{visitor.name} has joined, from {visitor.address} ({counted(len(self._members), 'member')})"
        )
        self._tell_members()
        for run in list(self._runs.values()):
            self._offer(run)
        return ""

    def _tell_members(self) -> None:
        for member in self._members.values():
            member.frames.send(["members", list(self._members)])

    # Runs

    def _ask(self, visitor: Visitor, about: dict) -> str:
        """Why there can be no such run; empty: it is told who is there, now or when there are enough."""
        run = Run(visitor, about)
        if run.is_room and not self._about["room"]:
            return "this server is no room: it was started without --room; spcomm run --server uses it, with --boxes"
        same = next((one for one in self._runs.values() if one.group == run.group), None)
        if same is not None:
            return (
                f"group {run.group} has a run already: {same.program}, of {same.runner.name}; wait for its end, or "
                f"give another group, as in --group {_free_group(self._runs.values())}"
            )
        if len(self._runs) >= RUNS_MOST:
            return f"the server is full: it has {RUNS_MOST} runs, and is allowed no more; try again later"
        if run.wanted > self._about["most"] and run.is_room:
            return f"--members {run.wanted}: this room has at most {self._about['most']} members"
        visitor.role, visitor.run = "run", run
        self._runs[run.token] = run
        self._offer(run)
        return ""

    def _offer(self, run: Run) -> None:
        if run.offered is not None:
            return
        there = [[member.name, member.slots] for member in self._members.values()]
        if not run.is_room or len(there) >= run.wanted:
            run.offered = dict(self._members)
            run.runner.frames.send(["members", run.token, there, self._about["link_timeout"]])
        else:
            run.runner.frames.send(["waiting", len(there), run.wanted])

    def _begin(self, run: Run, about: dict) -> None:
        """The run has decided who runs what."""
        places = [int(box) for box in about["places"]]
        names = [str(name) for name in about["boxes"]]
        boxes = max(places, default=0) + 1
        if (
            run.offered is None
            or run.begun
            or boxes > _BOXES_MOST
            or min(places, default=0) < 0
            or (names and len(names) != boxes)
        ):
            raise ValueError
        run.begun, run.boxes = True, boxes
        # A name may be somebody else's by now.
        missing = [name for name in names if run.offered.get(name) is not self._members.get(name, run)]
        if missing:
            self._over(run, f"{missing[0]} has left the room")
            return
        secrets = [os.urandom(SECRET_BYTES) for _box in range(boxes)]
        if boxes > 1:
            run.job = int.from_bytes(os.urandom(4), "little") or 1
            self._server.add_job(run.job, places)
            self._secrets.update({(run.job, box): secret for box, secret in enumerate(secrets)})
        run.members = [self._members[name] for name in names]
        run.tickets = {
            (role, box): os.urandom(16).hex() for role in ("reach", "box") for box in range(len(names))
        }
        tickets = [run.tickets["reach", box] for box in range(len(names))]
        told = {"job": run.job, "secrets": [secret.hex() for secret in secrets], "tickets": tickets}
        run.runner.frames.send(["granted", told])
        for box, member in enumerate(run.members):
            about = {"run": run.token, "box": box, "ticket": run.tickets["box", box]}
            member.frames.send(["run", {**about, "program": run.program, "from": run.runner.name}])
        if names:
            self._loop.at(f"boxes {run.token}", _BOXES_S, lambda: self._missing(run))
        where = f", on {', '.join(names)}" if names else ""
        self._say(f"{run.runner.name} runs {run.program} (group {run.group}){where}")

    def _missing(self, run: Run) -> None:
        silent = [member.name for box, member in enumerate(run.members) if ("box", box) not in run.ends]
        if silent:
            self._over(run, f"{', '.join(silent)} did not start anything within {_BOXES_S:g} s")

    def _way(self, visitor: Visitor, role: str, about: dict) -> None:
        """One end of the way between a run and a box."""
        run, box = self._runs.get(about["run"]), int(about["box"])
        if run is None or not 0 <= box < len(run.members) or (role, box) in run.ends:
            self._refuse(visitor, "the run that it belongs to has ended")
            return
        if not hmac.compare_digest(run.tickets[role, box], str(about["ticket"])):
            self._refuse(visitor, "it has no ticket for that end of the way to a box")
            return
        visitor.role, visitor.run, visitor.box = role, run, box
        run.ends[role, box] = visitor
        other = run.ends.get(("box" if role == "reach" else "reach", box))
        if other is None:
            self._loop.remove(visitor.fd)  # nobody hears it yet
            return
        for one, its_partner in ((visitor, other), (other, visitor)):
            one.partner = its_partner
        for message, data in other.early:
            visitor.frames.send(message, data)
        other.early.clear()

    def _over(self, run: Run, sentence: str) -> None:
        """The run cannot go on; it hears why, once, and ends."""
        if not run.is_over:
            run.is_over = True
            run.runner.frames.send(["over", sentence])

    def _forget(self, run: Run) -> None:
        """A run has ended: nobody runs anything for it any more."""
        if self._runs.pop(run.token, None) is None:
            return
        self._loop.forget(f"boxes {run.token}")
        for end in run.ends.values():
            end.ending = True
        if self._withdraw(run):
            self._server.fail_job(run.job, "the run has ended")
        if run.begun:
            self._say(f"{run.program} of {run.runner.name} has ended")

    def _withdraw(self, run: Run) -> bool:
        """Let no gateway of a run in any more. False: none was let in before."""
        withdrawn = [self._secrets.pop((run.job, box), None) for box in range(run.boxes if run.job else 0)]
        return any(withdrawn)

    # The server of frames, in a thread of its own

    def _job_ended(self, job: int, sentence: "str | None") -> None:
        """Called in that thread."""
        self._ended.append((job, sentence))
        os.write(self._tell, b".")

    def _hear_server(self) -> None:
        os.read(self._news, 4096)
        while self._ended:
            job, sentence = self._ended.popleft()
            run = next((one for one in self._runs.values() if one.job == job), None)
            if sentence is None:
                counts = [self._server.counts(job, box) for box in range(run.boxes if run is not None else 0)]
                self._server.remove_job(job)
                if run is not None and self._withdraw(run):
                    run.runner.frames.send(["over", "", counts])
            elif run is not None:
                self._over(run, _with_names(sentence, run))

    # What waits

    def flush(self) -> None:
        """Write what is taken, close what has ended, and let nobody say more than its partner takes."""
        for visitor in list(self.visitors.values()):
            frames = visitor.frames
            if frames.flush():
                self._loop.remove(frames.writing)
                if visitor.ending:
                    self._leave(visitor)
                    continue
            else:
                self._loop.add(frames.writing, _nothing, write=True)
            if frames.broken or (visitor.partner is None and frames.kept > MOST):  # it does not read
                self._leave(visitor)
            elif visitor.partner is not None:
                if visitor.partner.frames.kept > MOST:
                    self._loop.remove(visitor.fd)
                else:
                    self._listen(visitor)

    def part(self) -> None:
        """Everybody leaves."""
        for visitor in list(self.visitors.values()):
            if visitor.role == "join":
                visitor.frames.send(["bye"])
            elif visitor.role == "run":
                visitor.frames.send(["over", "the server was ended"])
        for visitor in self.visitors.values():
            visitor.frames.close()
        self.visitors.clear()

    def close(self) -> None:
        """After `part`, and once the server tells nothing more."""
        self._server.on_end = None
        self._loop.remove(self._news)
        os.close(self._news)
        os.close(self._tell)


def _with_names(sentence: str, run: Run) -> str:
    """Boxes have numbers; people know the machines by name."""
    names = [
        f"box {box} is {member.name}" for box, member in enumerate(run.members) if f"box {box} " in sentence
    ]
    return f"{sentence} ({', '.join(names)})" if names else sentence


def _free_group(runs: "Any") -> int:
    taken = {run.group for run in runs}
    return next(number for number in range(len(taken) + 1) if number not in taken)


def _nothing() -> None:
    pass
