# SPDX-License-Identifier: MIT
"""Members and runs in a room, or at a server, and the ways between a run and its boxes.

Every connection here has proved that it knows the code. Its first message gives its purpose, or names the link
(`room_link`) that goes on over it:

========  ============================================================================================
`join`    a member: for as long as it stays, it gets a message for each run that needs a box on it
`run`     a run: it asks for the list of members, and gets a job of the server; its end is the run's end. The run of a
          `Cluster` gets a job for each call, one after the other
`reach`   one end of the way between a run and a box, and `box` the other; each gets the messages of the other. Each
          shows the ticket that only the run, or that member, was given
`meet`    a box without a launcher: it waits until all nodes of its run are there (`meeting`)
`look`    a doctor: it gets the server's versions, members and number of runs; not a link
========  ============================================================================================
"""

import hmac
import os
import time
from collections import deque
from typing import TYPE_CHECKING

from spcomm._core.errors import SpcommError
from spcomm.launch.base import nothing
from spcomm.launch.base.wire import NONSENSE
from spcomm.launch.remote import versions
from spcomm.launch.remote.control_link import LinkError
from spcomm.launch.remote.framing import MOST, FrameError, one_line
from spcomm.launch.remote.handshake import SECRET_BYTES
from spcomm.launch.room.connect import EINVAL, EVERSION, differ, keep_alive
from spcomm.launch.room.meeting import Meeting, Seat, elsewhere
from spcomm.launch.room.room_framing import RoomFrames
from spcomm.launch.room.room_link import RoomLink, proof
from spcomm.text import counted

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from spcomm._core import net
    from spcomm.launch.base.loop import Loop
    from spcomm.launch.remote.tls import Session

_HELLO_S = 10.0  # for an accepted connection to send its purpose
_BOXES_S = 30.0  # for members to answer a run
_RETURN_S = 2.0  # for members whose connection has just broken, before a run does without them
_PART_S = 2.0  # for all connections to receive the end
_AWAY_MOST = 64  # members that were silent for too long, and may come back
_BOXES_MOST = 64
_GROUPS_MOST = 64  # of one run
_NAME_MOST = 64
RUNS_MOST = 16


class Connection:
    """One member, run, or end of a way. Its link outlives the connections of the network."""

    def __init__(self, link: RoomLink, number: str, ticket: bytes, address: str) -> None:
        self.link = link
        self.number = number  # of the link
        self.ticket = ticket
        self.address = address
        self.role = ""
        self.name = ""
        self.slots = 1
        self.run: Run | None = None
        self.meeting: Meeting | None = None
        self.box = -1
        self.partner: Connection | None = None  # the other end of a way
        self.early: list[tuple[list, bytes]] = []  # said before there was one
        self.ending = False  # it is forgotten once it has received the kept messages


class GroupJob:
    """The boxes of one group of a run, and the server's job for them."""

    def __init__(self, about: dict, boxes_of_run: int) -> None:
        """`about`: the box of each rank, and the number in the run of each box. Raises `ValueError`."""
        self.places = [int(box) for box in about["places"]]
        self.of_run = [int(box) for box in about["boxes"]]
        self.boxes = max(self.places, default=0) + 1
        self.number = 0  # of the job; 0: one box has nothing to carry
        self.is_over = True
        self.counts: list[dict] = []  # of the links, at its end
        if (
            self.boxes > _BOXES_MOST
            or min(self.places, default=0) < 0
            or len(self.of_run) != self.boxes
            or not all(0 <= box < boxes_of_run for box in self.of_run)
        ):
            raise ValueError(about)


class Run:
    """One run that asks this server for boxes, or for a job."""

    def __init__(self, runner: Connection, about: dict) -> None:
        self.runner = runner
        self.token = os.urandom(16).hex()
        self.groups = [int(group) for group in about["groups"]]
        self.program = one_line(about["program"], 200)
        self.is_room = bool(about["room"])
        self.is_cluster = self.is_room and bool(
            about.get("cluster")
        )  # its boxes run one call after the other
        self.wanted = max(1, int(about.get("members") or 1))
        self.jobs: list[GroupJob] = []  # of its groups
        if not 1 <= len(self.groups) == len(set(self.groups)) <= _GROUPS_MOST:
            raise ValueError(about)
        self.offered: dict[str, Connection] | None = None  # the offered members; the run chooses
        self.has_waited = False  # for members that are out of reach
        self.begun = False
        self.is_over = False  # it has got the reason why it cannot go on
        self.members: list[Connection] = []  # by box
        self.ends: dict[tuple[str, int], Connection] = {}
        self.tickets: dict[tuple[str, int], str] = {}  # for these ends


class Broker:
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
        self.connections: dict[str, Connection] = {}  # by the number of the link
        self._guests: dict[int, RoomFrames] = {}  # that have not sent their purpose
        self._members: dict[str, Connection] = {}
        self._away: dict[str, Connection] = {}  # members that may come back, by the number of the link
        self._runs: dict[str, Run] = {}
        self._meetings: list[Meeting] = []  # until the last of its boxes has left
        self._ended: deque[tuple[int, str | None]] = deque()
        self._is_parting = False
        self._news, self._tell = os.pipe()
        os.set_blocking(self._news, False)
        server.on_end = self._job_ended
        loop.add(self._news, self._hear_server)
        self._beat()

    @property
    def count(self) -> int:
        """The number of connections."""
        return len(self.connections) + len(self._guests)

    # Connections

    def welcome(self, sock: "socket.socket", session: "Session | None", binding: bytes) -> None:
        """Accept one more connection that has proved that it knows the code."""
        try:
            keep_alive(sock)
            frames = RoomFrames(sock, session, binding)
        except OSError:  # it is gone again
            sock.close()
            return
        fd = frames.reading
        self._guests[fd] = frames
        self._loop.add(fd, lambda: self._hear_guest(frames))
        self._loop.at(f"hello {fd}", _HELLO_S, lambda: self._dismiss(frames))

    def _hear_guest(self, frames: RoomFrames) -> None:
        try:
            message = frames.message()
            if message is None:
                self._dismiss(frames)
            elif message:
                self._first(frames, message)
        except (FrameError, LinkError, SpcommError, *NONSENSE):
            self._dismiss(frames)  # it knows the code, and does not speak our language

    def _first(self, frames: RoomFrames, message: list) -> None:
        if message[0] == "resume":
            _resume, number, shown, received = message
            self._resume(frames, str(number), str(shown), int(received))
            return
        if message[0] == "gone":
            self._gone(frames, *map(str, message[1:]))
            return
        _hello, purpose, theirs, about, *of = message
        if purpose == "look":
            room = {"room": self._about["room"], "members": list(self._members), "runs": len(self._runs)}
            self._answer(frames, self._expired(), ["welcome", versions.mine(), room])
            return
        number, ticket = str(of[0]["link"]), bytes.fromhex(of[0]["ticket"])
        if purpose not in ("join", "run", "reach", "box", "meet") or len(number) != 32 or len(ticket) != 32:
            raise ValueError(purpose)
        if number in self.connections or number in self._away:
            raise ValueError(number)
        link = RoomLink(self._loop, self._about["link_timeout"])
        connection = Connection(link, number, ticket, frames.peer[0])
        why, status = "" if purpose in ("reach", "box") else differ(dict(theirs)), EVERSION
        if not why:
            why, status = (
                self._enter(connection, purpose, dict(about), self._away_before(frames, of[0])),
                EINVAL,
            )
        if why:
            self._answer(frames, why, [], status)
            return
        self.connections[number] = connection
        frames.send(["linked", link.timeout_s])
        self._forget_guest(frames)
        link.attach(frames, 0)
        link.listen(self._loop, lambda: self._hear(connection))
        self._offer_again(connection)

    def _resume(self, frames: RoomFrames, number: str, shown: str, received: int) -> None:
        """Carry a link on over this connection; give up the link's old connection if it still exists."""
        connection = self.connections.get(number)
        if connection is None:
            frames.send(["unknown"])  # it may send `hello` next
            return
        if not hmac.compare_digest(proof(connection.ticket, "client", frames.binding), shown):
            raise ValueError(number)
        ours = proof(connection.ticket, "server", frames.binding)
        link = connection.link
        frames.send(["resumed", ours, link.acknowledging, link.timeout_s])
        self._forget_guest(frames)
        try:
            link.attach(frames, received)
        except LinkError:
            frames.close()
            self._leave(connection)
            return
        self._offer_again(connection)

    def _gone(self, frames: RoomFrames, number: str, shown: str) -> None:
        """The process of a link was killed; a child of it reports that."""
        connection = self.connections.get(number)
        if connection is None or not hmac.compare_digest(
            proof(connection.ticket, "gone", frames.binding), shown
        ):
            raise ValueError(number)
        self._answer(frames, "", ["known"])
        self._leave(connection)

    def _away_before(self, frames: RoomFrames, of: dict) -> "Connection | None":
        """The member that is back, if it was away and can prove that."""
        number, shown = of.get("was") or ("", "")
        found = self._away.get(str(number))
        if found is None or not hmac.compare_digest(
            proof(found.ticket, "client", frames.binding), str(shown)
        ):
            return None
        return found

    def _answer(self, frames: RoomFrames, why: str, message: list, status: int = EINVAL) -> None:
        """Send a guest its last message."""
        frames.send(["refused", why, status] if why else message)
        self._dismiss(frames)

    def _forget_guest(self, frames: RoomFrames) -> None:
        del self._guests[frames.reading]
        self._loop.forget(f"hello {frames.reading}")
        self._loop.remove(frames.reading)

    def _dismiss(self, frames: RoomFrames) -> None:
        if self._guests.get(frames.reading) is frames:
            self._forget_guest(frames)
            frames.close()

    def _expired(self) -> str:
        if time.time() < self._about["expires"]:
            return ""
        at = time.strftime("%H:%M", time.localtime(self._about["expires"]))
        return f"that code has expired: it was good until {at}; restart spcomm serve to get another"

    def _hear(self, connection: Connection) -> None:
        try:
            frames = connection.link.receive()
            if frames is None:
                self._leave(connection)
                return
            for message, data in frames:
                self._heard(connection, message, data)
        except (FrameError, SpcommError, *NONSENSE):
            self._leave(connection)

    def _heard(self, connection: Connection, message: list, data: bytes) -> None:
        if connection.ending or connection.number not in self.connections:
            return
        if connection.role == "reach" and message[0] == "abandoned" and connection.run is not None:
            self._forget(connection.run)  # its launcher was killed
        elif connection.role in ("reach", "box"):
            if connection.partner is None:
                connection.early.append((message, data))
            else:
                connection.partner.link.send(message, data)
        elif connection.role == "run" and message[0] == "begin" and connection.run is not None:
            self._begin(connection.run, message[1])
        elif connection.role == "run" and message[0] in ("call", "called") and connection.run is not None:
            self._call(connection.run, message[0] == "call")
        elif connection.role == "meet" and message[0] == "failed" and connection.meeting is not None:
            code = int(message[1])
            self._end_meeting(
                connection.meeting, code if code in range(1, 256) else 125, str(message[2]), connection
            )
        elif connection.role == "join" and message[0] in ("cannot", "ended"):
            run = self._runs.get(message[1])
            if run is not None and connection in run.members:
                self._box_ended(run, connection, message)

    def _box_ended(self, run: Run, member: Connection, message: list) -> None:
        """A box cannot be started on a member, or has ended there; usually the box has already reported it."""
        if message[0] == "cannot":
            self._over(run, f"{member.name}: {one_line(message[2], 300)}")
            return
        box = int(message[2])
        if not 0 <= box < len(run.members) or run.members[box] is not member:
            raise ValueError(box)
        end = run.ends.get(("box", box))
        if end is not None:
            self._leave(end)
        else:
            self._over(run, f"{member.name}: the box there ended before it was connected")

    def _enter(self, connection: Connection, purpose: str, about: dict, away: "Connection | None") -> str:
        """Return why the connection cannot enter; empty: it is in. `away`: it is this member, which is back."""
        connection.name = one_line(about.get("name") or connection.address, _NAME_MOST)
        if self._is_parting:
            return "the server was ended"
        if purpose in ("reach", "box"):
            return self._way(connection, purpose, about)
        expired = self._expired() if away is None else ""
        if expired:
            return expired
        if purpose in ("run", "meet"):
            return self._ask(connection, about) if purpose == "run" else self._meet(connection, about)
        if away is not None:
            connection.name = away.name
        why = self._join(connection, about)
        if not why and away is not None:
            del self._away[away.number]
        return why

    def _leave(self, connection: Connection) -> None:
        """A connection is over."""
        if self.connections.pop(connection.number, None) is None:
            return
        link = connection.link
        is_lost = link.is_gone  # by silence
        link.close()
        if connection.partner is not None:
            self._end(connection.partner)  # earlier messages to it still arrive
        if connection.role == "join":
            self._member_left(connection, is_lost)
        elif connection.role == "run" and connection.run is not None:
            self._forget(connection.run)
        elif connection.role == "meet" and connection.meeting is not None:
            self._leave_meeting(connection.meeting, connection)

    def _member_left(self, member: Connection, is_lost: bool) -> None:
        del self._members[member.name]
        if is_lost:
            self._away[member.number] = member
            while len(self._away) > _AWAY_MOST:
                del self._away[next(iter(self._away))]
        self._say(f"{member.name} has left ({counted(len(self._members), 'member')})")
        self._tell_members()
        for run in list(self._runs.values()):
            if member in run.members and ("box", run.members.index(member)) not in run.ends:
                self._over(run, f"{member.name} has left the room")

    def _end(self, connection: Connection) -> None:
        """Send it nothing more."""
        connection.ending = True
        connection.link.say_last()

    def _beat(self) -> None:
        """Give up silent connections and silent links."""
        for connection in list(self.connections.values()):
            run = connection.run if connection.role == "run" else None
            connection.link.beat(lapses=run is None or not self._is_carried_on(run))
        self._loop.at("beat", self._about["link_timeout"] / 30, self._beat)

    def _is_carried_on(self, run: Run) -> bool:
        """Whether it lives, though its launcher is silent: Ctrl-Z stops the launcher, but no relays and no gateways."""
        reaches = any(
            role == "reach" and end.number in self.connections for (role, _box), end in run.ends.items()
        )
        return reaches or (not run.is_over and any(not job.is_over for job in run.jobs))

    # Members

    def _join(self, connection: Connection, about: dict) -> str:
        """Return why it cannot join; empty: it is a member."""
        if not self._about["room"]:
            return "this server has no room: it was started without --room"
        if len(self._members) >= self._about["most"]:
            return f"the room is full: it has {counted(len(self._members), 'member')}, the most that it takes"
        name, number = connection.name, 1
        while connection.name in self._members:
            number += 1
            connection.name = f"{name}-{number}"
        connection.role, connection.slots = "join", min(1024, max(1, int(about["slots"])))
        self._members[connection.name] = connection
        connection.link.send(
            ["welcome", versions.mine(), {"name": connection.name, "expires": self._about["expires"]}]
        )
        self._say(
            f"{connection.name} has joined, from {connection.address} ({counted(len(self._members), 'member')})"
        )
        self._tell_members()
        return ""

    def _tell_members(self) -> None:
        for member in self._members.values():
            member.link.send(["members", list(self._members)])

    # Runs

    def _ask(self, connection: Connection, about: dict) -> str:
        """Return why there can be no such run; empty: it gets the list of members, now or when there are enough."""
        run = Run(connection, about)
        if run.is_room and not self._about["room"]:
            return "this server has no room: it was started without --room; spcomm run --server uses it, with --boxes"
        for group in () if run.is_cluster else run.groups:  # no other run can join a cluster
            taken = self._taken(group)
            if taken:
                return taken
        if len(self._runs) >= RUNS_MOST:
            return f"the server is full: it has {RUNS_MOST} runs, the most that it serves; try again later"
        if run.wanted > self._about["most"] and run.is_room:
            return f"--members {run.wanted}: this room has at most {self._about['most']} members"
        connection.role, connection.run = "run", run
        self._runs[run.token] = run
        self._offer(run)
        return ""

    def _taken(self, group: int) -> str:
        """Return why no other run can have this group; empty: one can."""
        groups = {
            group: f"{run.program}, of {run.runner.name}"
            for run in self._runs.values()
            for group in (() if run.is_cluster else run.groups)
        }
        groups.update({one.group: one.who() for one in self._meetings if not one.is_over})
        if group not in groups:
            return ""
        free = next(number for number in range(len(groups) + 1) if number not in groups)
        return (
            f"group {group} has a run already: {groups[group]}; wait for its end, or give another group, as in "
            f"--group {free}"
        )

    def _offer(self, run: Run) -> None:
        if run.offered is not None or run.token not in self._runs:
            return
        here = {
            name: member for name, member in self._members.items() if member.link.is_up or not run.is_room
        }
        if len(here) < len(self._members) and not run.has_waited:  # they are back in a moment, as a rule
            self._loop.at(f"return {run.token}", _RETURN_S, lambda: self._offer_rest(run))
        elif not run.is_room or len(here) >= run.wanted:
            run.offered = here
            there = [[member.name, member.slots] for member in here.values()]
            run.runner.link.send(["members", run.token, there, self._about["link_timeout"]])
        else:
            run.runner.link.send(["waiting", len(here), run.wanted])

    def _offer_again(self, member: Connection) -> None:
        """It is here, or here again."""
        for run in list(self._runs.values()) if member.role == "join" else ():
            self._offer(run)

    def _offer_rest(self, run: Run) -> None:
        run.has_waited = True
        self._offer(run)

    def _begin(self, run: Run, about: dict) -> None:
        """The run has decided which members run its boxes."""
        names = [str(name) for name in about["boxes"]]
        jobs = [GroupJob(of_group, len(names) or _BOXES_MOST) for of_group in about["groups"]]
        if run.offered is None or run.begun or len(names) > _BOXES_MOST or len(jobs) != len(run.groups):
            raise ValueError
        run.begun, run.jobs = True, jobs
        # A name may belong to another member by now.
        missing = [name for name in names if run.offered.get(name) is not self._members.get(name, run)]
        if missing:
            self._over(run, f"{missing[0]} has left the room")
            return
        given = []
        for job in jobs:
            given.append([0] if run.is_cluster else self._admit(job))
        run.members = [self._members[name] for name in names]
        run.tickets = {
            (role, box): os.urandom(16).hex() for role in ("reach", "box") for box in range(len(names))
        }
        tickets = [run.tickets["reach", box] for box in range(len(names))]
        run.runner.link.send(["granted", {"jobs": given, "tickets": tickets}])
        for box, member in enumerate(run.members):
            about = {
                "run": run.token,
                "box": box,
                "ticket": run.tickets["box", box],
                "cluster": run.is_cluster,
            }
            member.link.send(["run", {**about, "program": run.program, "from": run.runner.name}])
        if names:
            self._loop.at(f"boxes {run.token}", _BOXES_S, lambda: self._missing(run))
        where = f", on {', '.join(names)}" if names else ""
        groups = f"group{'s' * (len(run.groups) > 1)} {', '.join(map(str, run.groups))}"
        self._say(f"{run.runner.name} runs {run.program} ({groups}){where}")

    def _admit(self, job: GroupJob) -> list:
        """Have the server carry a group. Return the job's number, and the secret of each box; one box has neither."""
        secrets = [os.urandom(SECRET_BYTES) for _box in range(job.boxes)] if job.boxes > 1 else []
        if secrets:
            job.number = int.from_bytes(os.urandom(4), "little") or 1
            self._server.add_job(job.number, job.places)
            job.is_over = False
            self._secrets.update({(job.number, box): secret for box, secret in enumerate(secrets)})
        return [job.number, *(secret.hex() for secret in secrets)]

    def _call(self, run: Run, begins: bool) -> None:
        """A call of a cluster begins, and gets a job; or it is over, whether or not all was carried."""
        if not run.is_cluster or not run.begun or run.jobs[0].boxes < 2 or (begins and run.jobs[0].number):
            raise ValueError
        (job,) = run.jobs
        if begins:
            run.runner.link.send(["granted", {"jobs": [self._admit(job)]}])
            return
        if self._withdraw(job.number, job.boxes):
            self._server.fail_job(job.number, "the call has ended")
        job.number, job.is_over = 0, True

    def _missing(self, run: Run) -> None:
        silent = [member.name for box, member in enumerate(run.members) if ("box", box) not in run.ends]
        if silent:
            self._over(run, f"{', '.join(silent)} did not start anything within {_BOXES_S:g} s")

    def _way(self, connection: Connection, role: str, about: dict) -> str:
        """Add one end of the way between a run and a box. Return why it cannot be one; empty: it is."""
        run, box = self._runs.get(about["run"]), int(about["box"])
        if run is None or not 0 <= box < len(run.members) or (role, box) in run.ends:
            return "the run that it belongs to has ended"
        if not hmac.compare_digest(run.tickets[role, box], str(about["ticket"])):
            return "it has no ticket for that end of the way to a box"
        connection.role, connection.run, connection.box = role, run, box
        run.ends[role, box] = connection
        other = run.ends.get(("box" if role == "reach" else "reach", box))
        if other is None:
            return ""
        for one, its_partner in ((connection, other), (other, connection)):
            one.partner = its_partner
        for message, data in other.early:
            connection.link.send(message, data)
        other.early.clear()
        return ""

    def _over(self, run: Run, sentence: str) -> None:
        """The run cannot go on: send it the reason, once, and end it."""
        if not run.is_over:
            run.is_over = True
            run.runner.link.send(["over", sentence])

    def _forget(self, run: Run) -> None:
        """A run has ended: no member runs anything for it any more."""
        if self._runs.pop(run.token, None) is None:
            return
        self._loop.forget(f"boxes {run.token}")
        self._loop.forget(f"return {run.token}")
        for end in run.ends.values():
            self._end(end)
        for job in run.jobs:
            if self._withdraw(job.number, job.boxes):
                self._server.fail_job(job.number, "the run has ended")
        if run.begun:
            self._say(f"{run.program} of {run.runner.name} has ended")

    def _withdraw(self, job: int, boxes: int) -> bool:
        """Let no gateway of a job in any more. False: none was let in before."""
        withdrawn = [self._secrets.pop((job, box), None) for box in range(boxes if job else 0)]
        return any(withdrawn)

    # Boxes without a launcher

    def _meet(self, connection: Connection, about: dict) -> str:
        """Return why this box cannot take part; empty: it waits, or its run begins."""
        group, seat = int(about["group"]), Seat(connection, about)
        meeting = next((one for one in self._meetings if one.group == group and not one.is_over), None)
        if meeting is None or meeting.job:
            why = self._taken(group)
            if not why and len(self._runs) + len(self._meetings) >= RUNS_MOST:
                why = f"the server is full: it has {RUNS_MOST} runs, and is allowed no more; try again later"
            meeting = Meeting(group, seat.total)
        else:
            why = meeting.refusal(seat)
        if not why and len(meeting.seats) == _BOXES_MOST:
            why = f"group {group} has {_BOXES_MOST} boxes, the most that a run may have; start more nodes in each"
        if why:
            return why
        if not meeting.seats:
            self._meetings.append(meeting)
        meeting.seats.append(seat)
        connection.role, connection.meeting = "meet", meeting
        if meeting.is_complete:
            self._begin_meeting(meeting)
        self._tell_waiting()
        return ""

    def _tell_waiting(self) -> None:
        """Send the waiting boxes the list of boxes that have come."""
        waiting = [one for one in self._meetings if not one.job and not one.is_over]
        for meeting in waiting:
            others = elsewhere(waiting, meeting.group)
            for seat in meeting.seats:
                seat.connection.link.send(["waiting", meeting.there, meeting.who(), others])

    def _begin_meeting(self, meeting: Meeting) -> None:
        places = meeting.number()
        meeting.job = int.from_bytes(os.urandom(4), "little") or 1
        self._server.add_job(meeting.job, places)
        for seat in meeting.seats:
            secret = os.urandom(SECRET_BYTES)
            self._secrets[meeting.job, seat.box] = secret
            told = {
                "job": meeting.job,
                "box": seat.box,
                "ranks": seat.ranks,
                "places": places,
                "secret": secret.hex(),
                "sizes": meeting.sizes(),
                "link_timeout": self._about["link_timeout"],
            }
            seat.connection.link.send(["granted", told])
        self._say(f"group {meeting.group} runs {one_line(meeting.seats[0].program, 200)}: {meeting.who()}")

    def _end_meeting(
        self, meeting: Meeting, code: int, sentence: str, by: "Connection | None" = None
    ) -> None:
        """Send all of its boxes how the run ends, once. `by`: the connection of the box that ends it."""
        if meeting.is_over:
            return
        meeting.is_over = True
        cause = next((seat for seat in meeting.seats if seat.connection is by), None)
        where = "" if cause is None else f"box {cause.box} ({cause.name})"
        for seat in meeting.seats:
            seat.connection.link.send(["ended", code, sentence, where, seat is cause])
        self._say(f"group {meeting.group} has ended")

    def _leave_meeting(self, meeting: Meeting, connection: Connection) -> None:
        seat = next(seat for seat in meeting.seats if seat.connection is connection)
        if meeting.job:
            self._end_meeting(meeting, 125, "has ended, or the network to it has", connection)
        meeting.seats.remove(seat)
        if meeting.seats:
            self._tell_waiting()
            return
        self._meetings.remove(meeting)
        if self._withdraw(meeting.job, meeting.boxes):
            self._server.fail_job(meeting.job, "the run has ended")

    # The server of frames, in a thread of its own

    def _job_ended(self, job: int, sentence: "str | None") -> None:
        """Called in that thread."""
        self._ended.append((job, sentence))
        os.write(self._tell, b".")

    def _hear_server(self) -> None:
        os.read(self._news, 4096)
        while self._ended:
            job, sentence = self._ended.popleft()
            meeting = next((one for one in self._meetings if one.job == job), None)
            if meeting is not None:
                self._meeting_carried(meeting, sentence)
                continue
            pairs = [(run, one) for run in self._runs.values() for one in run.jobs if one.number == job]
            if sentence is not None:
                for run, of_group in pairs:
                    self._over(run, _with_names(sentence, run, of_group))
                continue
            for _run, of_group in pairs:
                of_group.counts = [self._server.counts(job, box) for box in range(of_group.boxes)]
            self._server.remove_job(job)
            for run, of_group in pairs:
                self._group_carried(run, of_group)

    def _group_carried(self, run: Run, job: GroupJob) -> None:
        """All gateways of a group have ended: after the last group the run is told."""
        job.is_over = True
        if self._withdraw(job.number, job.boxes) and all(one.is_over for one in run.jobs):
            run.runner.link.send(["over", "", [one.counts for one in run.jobs], job.number])

    def _meeting_carried(self, meeting: Meeting, sentence: "str | None") -> None:
        """All gateways of it have ended, or `sentence` says why they cannot go on."""
        if sentence is None:
            self._server.remove_job(meeting.job)
            self._withdraw(meeting.job, meeting.boxes)
        self._end_meeting(meeting, 0 if sentence is None else 125, sentence or "")

    # Waiting messages

    def flush(self) -> None:
        """Forget ended connections, and let no connection send more than its partner takes."""
        for connection in list(self.connections.values()):
            link = connection.link
            if connection.ending:
                if link.has_arrived:
                    self._leave(connection)
            elif connection.role in ("reach", "box"):
                link.hold(connection.partner is None or connection.partner.link.kept > MOST)
            elif link.kept > MOST:  # it does not read
                self._leave(connection)

    def part(self) -> None:
        """Disconnect all, runs first: a member ends its boxes, and a run would blame the member."""
        late: list[bool] = []
        self._say = nothing  # that they leave is no news now
        self._is_parting = True
        ended = ["ended", 125, "the server was ended", "", False]
        for role, message in (("run", ["over", "the server was ended"]), ("meet", ended), ("join", ["bye"])):
            for connection in self.connections.values():
                if connection.role == role:
                    connection.link.send(message)
        for connection in self.connections.values():
            self._end(connection)
        self._loop.at("part", _PART_S, lambda: late.append(True))
        while not late and self.connections:  # those whose connection is broken are back in a moment
            self._loop.turn()
            self.flush()
        self._loop.forget("part")
        self._loop.forget("beat")
        for connection in self.connections.values():
            connection.link.close()
        for frames in list(self._guests.values()):
            self._dismiss(frames)
        self.connections.clear()

    def close(self) -> None:
        """Call it after `part`, and once the server reports nothing more."""
        self._server.on_end = None
        self._loop.remove(self._news)
        os.close(self._news)
        os.close(self._tell)


def _with_names(sentence: str, run: Run, job: GroupJob) -> str:
    """Replace box numbers by the names of the machines, which users know."""
    names = [
        f"box {box} is {run.members[number].name}"
        for box, number in enumerate(job.of_run)
        if number < len(run.members) and f"box {box} " in sentence
    ]
    return f"{sentence} ({', '.join(names)})" if names else sentence
