# SPDX-License-Identifier: MIT
"""Strangers at the door of a room, while a program runs in it; and those who know the code and misbehave."""

import contextlib
import json
import os
import resource
import select
import socket
import ssl
import threading

import pytest

from pretending import CHALLENGE, HELLO, ORDER, Pretender, message
from processes import read_until
from rooming import CODE, HOST, OTHER_CODE
from spcomm import VersionError
from spcomm._core import net
from spcomm.launch.base.loop import Loop
from spcomm.launch.remote import handshake, tls, versions
from spcomm.launch.room import connect, join_code, room_link
from spcomm.launch.room.room_link import ClientLink

KEY = join_code.key(CODE)
RUNS = """
    import sys, threading, numpy as np, spcomm
    comm = spcomm.startup()
    told = [0]
    def listen():
        sys.stdin.readline()
        told[0] = 1
    if comm.rank == 0:
        threading.Thread(target=listen).start()
    print("ready", flush=True)
    rounds = 0
    while not comm.allreduce(told[0]):
        assert (comm.allreduce(np.full(1000, comm.rank)) == sum(range(comm.size))).all()
        rounds += 1
    print("well", flush=True)
"""


@pytest.fixture
def busy(room):
    """A room whose members run a program all the time. When the test ends it must have gone well."""
    room.serve("--room")
    room.join("ann")
    room.join("bob")
    run = room.start("run", "--room", room.place, "-n", 3, room.script(RUNS), stdin=-1)
    for _node in range(3):
        read_until(run.stdout, "ready")
    yield room
    joined = room.join("late")  # the door is still open to those who know the code
    assert joined.poll() is None
    result = room.finish(run, b"\n")
    assert result.code == 0 and result.lines == ["well"] * 3, result
    server, *_members = room.close_room()
    assert server.code == 0 and "Traceback" not in server.err, server


@contextlib.contextmanager
def connections(room, count):
    """So many, open at a time."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 200)), hard))
    found = []
    try:
        for _time in range(min(count, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 150)):
            found.append(socket.create_connection((HOST, room.port), 60))
        yield found
    finally:
        for one in found:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def rest(sock):
    """All that still comes, until it is closed."""
    sock.settimeout(60)
    found = b""
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(4096):
            found += piece
    return found


def tls_hello():
    """The first bytes of a client of TLS."""
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        tls._client_context().wrap_bio(coming, going).do_handshake()
    return going.read()


def inside(stranger):
    """The same connection, in TLS."""
    return tls._client_context().wrap_socket(stranger, do_handshake_on_connect=True)


# ---- who does not know the code


@pytest.mark.stress
def test_a_thousand_connections(busy):
    with connections(busy, 1000) as strangers:
        assert len(strangers) > 500
        result = busy("doctor", busy.place)
        assert result.code == 0, result
        assert {rest(stranger) for stranger in strangers} == {b""}  # each is sent away, and hears nothing


@pytest.mark.stress
def test_a_thousand_that_have_begun_to_speak(busy):
    with connections(busy, 1000) as strangers:
        for number, stranger in enumerate(strangers):
            said = tls_hello() if number % 2 else message(HELLO, random=os.urandom(32))
            with contextlib.suppress(ConnectionError):
                stranger.send(said[: number % (len(said) + 1)])
        result = busy("doctor", busy.place)
        assert result.code == 0, result
        assert all(len(rest(stranger)) < 2048 for stranger in strangers)  # a verdict, a certificate, nothing


@pytest.mark.slow
def test_garbage_and_floods(busy):
    hello = tls_hello()
    for head in (
        b"",
        message(HELLO, random=os.urandom(32)),
        b"GET / HTTP/1.1\r\n\r\n",
        hello,
        hello[:99],
        b"\x16\3\1\x40\0\1\0\xff\xff",
    ):
        with connections(busy, 20) as strangers:
            for stranger in strangers:
                stranger.settimeout(60)
                with contextlib.suppress(ConnectionError):
                    stranger.sendall(head + os.urandom(1 << 20))
            for stranger in strangers:
                assert len(rest(stranger)) < 2048


@pytest.mark.slow
def test_floods_inside_tls(busy):
    for head in (b"", message(HELLO, random=os.urandom(32))):
        with connections(busy, 5) as strangers:
            for number, stranger in enumerate(strangers):
                strangers[number] = stranger = inside(stranger)
                stranger.settimeout(60)
                with contextlib.suppress(OSError):
                    stranger.sendall(head + os.urandom(1 << 20))
            for stranger in strangers:
                with contextlib.suppress(ssl.SSLError):
                    assert len(rest(stranger)) <= 128


def recorded(room):
    """All that somebody who knows the code sends: to join, by a wire on which another one listens."""
    heard = []
    listener = socket.create_server((HOST, 0))

    def listen():
        client, _address = listener.accept()
        with client, socket.create_connection((HOST, room.port)) as server:
            ends = {client: server, server: client}
            while True:
                for one in select.select(list(ends), [], [])[0]:
                    data = one.recv(4096)
                    if not data:
                        return
                    if one is client:
                        heard.append(data)
                    ends[one].sendall(data)

    thread = threading.Thread(target=listen)
    thread.start()
    frames = connect.enter(listener.getsockname(), KEY)
    look = ["hello", "look", versions.mine(), {}]
    assert connect.ask(frames, look, listener.getsockname())[0] == "welcome"
    frames.close()
    thread.join()
    listener.close()
    return b"".join(heard)


@pytest.mark.slow
def test_a_connection_that_is_played_again(busy):
    said = recorded(busy)
    assert len(said) > 500  # TLS, HELLO, PROOF, and what it was for
    with connections(busy, 5) as strangers:
        for stranger in strangers:
            stranger.sendall(said)
        for stranger in strangers:
            assert len(rest(stranger)) < 2048  # the server's part of TLS, with another key


@pytest.mark.slow
def test_a_handshake_that_is_played_again(busy, monkeypatch):
    """Inside TLS, by somebody who had been its end."""
    said, send = [], tls.Session.send
    monkeypatch.setattr(
        tls.Session, "send", lambda session, sock, data: (said.append(data), send(session, sock, data))
    )
    guest(busy).close()
    monkeypatch.undo()
    assert [len(one) for one in said] == [64, 64]  # HELLO, PROOF
    with connections(busy, 5) as strangers:
        for number, stranger in enumerate(strangers):
            strangers[number] = stranger = inside(stranger)
            for one in said:
                stranger.sendall(one)
        for stranger in strangers:
            answer = rest(stranger)
            assert len(answer) == 128 and answer[64 + 4 : 64 + 6] == bytes([5, 2]), answer  # VERDICT: REFUSED


@pytest.mark.stress
def test_wrong_codes_over_and_over(busy):
    other = join_code.key(OTHER_CODE)
    for _time in range(5):
        with pytest.raises(connect.EntryError, match="does not know that code"):
            connect.enter((HOST, busy.port), other)
    with pytest.raises(connect.EntryError, match="does not know that code"):  # nor as a gateway of some job
        sock, talk = handshake.meet((HOST, busy.port), KEY, 12345, 0)
        sock.close()
        raise connect.EntryError(connect.refusal(("x", 1), talk))


@pytest.mark.slow
def test_another_version_is_told_so(busy):
    for head, verdict in (({"version": net.VERSION - 1}, 3), ({"version": 99}, 3), ({"order": 3 - ORDER}, 4)):
        for is_inside in (False, True):
            with connections(busy, 1) as strangers:
                (stranger,) = strangers[:] = map(inside, strangers) if is_inside else strangers
                stranger.sendall(message(HELLO, random=os.urandom(32), **head))
                answer = rest(stranger)
                assert len(answer) == 64 and answer[4:6] == bytes([5, verdict]), answer


def test_an_older_server_is_refused_in_one_sentence():
    """The frames that boxes send each other have another version, and nobody takes an old one for a new one."""
    server = Pretender(message(CHALLENGE, version=net.VERSION - 1, random=os.urandom(32)))
    try:
        with pytest.raises(VersionError) as caught:
            handshake.enter(("127.0.0.1", server.port), KEY, 5, 0)
    finally:
        server.close()
    assert str(caught.value) == (
        f"the server at {server.place} is of another version of spcomm; install the same one on all machines"
    )


# ---- who knows it

# The fields in which members and runs describe themselves.
OF = {"link": "0" * 32, "ticket": "0" * 64}
ABOUT = {"name": "x", "slots": 1, "group": 7, "groups": [7], "program": "x", "room": True, "members": 1}


def guest(room):
    return connect.enter((HOST, room.port), KEY)


class Guest:
    """One who has a link: it is served until its message comes."""

    def __init__(self, room, purpose, about):
        self.loop = Loop()
        self.link = ClientLink(self.loop, (HOST, room.port), KEY, purpose, about)
        self.link.listen(self.loop, lambda: None)
        self.send = self.link.send

    def following(self):
        return self.link.next_message(self.loop.turn)

    def why(self):
        """Why it is over."""
        with pytest.raises(connect.EntryError) as caught:
            while True:
                self.following()
        return str(caught.value)

    def close(self):
        self.link.finish()
        self.loop.close()


def refused(room, purpose, about):
    """Why there can be no such link."""
    with pytest.raises(connect.FinalError) as caught:
        Guest(room, purpose, about)
    return str(caught.value)


def ended_with(frames):
    """The reason that a guest is told before it is sent away; empty: nothing."""
    while True:
        select.select([frames.reading], [], [], 60)
        frames.flush()
        found = frames.message()
        if found is None:
            frames.close()
            return ""
        if found and found[0] == "refused":
            frames.close()
            return found[1]


@pytest.mark.slow
def test_another_spcomm_is_told_so(busy):
    for purpose in ("join", "run", "meet"):
        for theirs, part in (
            ({"spcomm": "0.0.1"}, "this machine has 0.0.1; install the same"),
            ({"order": "middle"}, "-endian"),
        ):
            frames = guest(busy)
            frames.send(["hello", purpose, {**versions.mine(), **theirs}, ABOUT, OF])
            assert part in ended_with(frames)


SAY = [
    [],
    ["hello"],
    ["hello", "join", {}, 5],
    ["hello", "join", versions.mine(), ABOUT],
    ["hello", "join", versions.mine(), ABOUT, {"link": "0", "ticket": ""}],
    ["hello", "join", versions.mine(), ABOUT, OF | {"was": 5}],
    ["hello", "join", versions.mine(), {"name": "x", "slots": "many"}, OF],
    ["hello", "run", versions.mine(), {}, OF],
    ["hello", "dance", versions.mine(), {}, OF],
    ["resume"],
    ["hello", "look", None, {}],
    [[[[]]]],
    ["hello", "join", versions.mine(), {"name": json.loads("[" * 900 + "]" * 900), "slots": 1}, OF],
]


def test_who_makes_no_sense_is_sent_away(busy):
    for said in SAY:
        frames = guest(busy)
        if said:
            frames.send(said)
        else:
            os.write(frames.writing, b"\0" * 64)
        assert ended_with(frames) == "", said


@pytest.mark.slow
def test_a_way_to_a_box_that_is_nobodys(busy):
    for purpose in ("reach", "box"):
        assert "has ended" in refused(busy, purpose, {"run": "0" * 32, "box": 0})


def wish(places, *members):
    """The request of a run of one group: the box of each rank, and who has the boxes."""
    return {"groups": [{"places": places, "boxes": list(range(max(places) + 1))}], "boxes": list(members)}


def run_and_members(room):
    """A run, its token, and two members."""
    members = []
    for number in (1, 2):
        members.append(Guest(room, "join", ABOUT | {"name": f"member{number}"}))
        read_until(room.server.stderr, f"member{number} has joined")
    run = Guest(room, "run", ABOUT | {"name": "run"})
    token = run.following()[1]
    return run, token, *members


def test_a_member_in_the_place_of_another(busy):
    """All members know the code, and those of a run its token: each end of a way to a box needs a ticket of its own."""
    run, token, *members = run_and_members(busy)
    run.send(["begin", wish([0, 1], "member1", "member2")])
    reach = [
        {"run": token, "box": box, "ticket": one} for box, one in enumerate(run.following()[1]["tickets"])
    ]
    boxes = []
    for member in members:
        while (message := member.following())[0] != "run":
            pass
        boxes.append({name: message[1][name] for name in ("run", "box", "ticket")})
    for role, theirs, wrong in [
        ("box", boxes[0], boxes[1]["ticket"]),
        ("box", boxes[0], reach[0]["ticket"]),
        ("box", boxes[0], ""),
        ("reach", reach[0], boxes[0]["ticket"]),
        ("reach", reach[0], reach[1]["ticket"]),
    ]:
        assert "has no ticket" in refused(busy, role, theirs | {"ticket": wrong})
    one, other = Guest(busy, "reach", reach[0]), Guest(busy, "box", boxes[0])
    one.send(["from the run"])
    assert other.following() == ["from the run"]
    for frames in (one, other, run, *members):
        frames.close()


@pytest.mark.slow
def test_a_member_that_answers_without_end(busy):
    """A run hears of it once; and only of a member that was to run something for it."""
    run, token, member, other = run_and_members(busy)
    run.send(["begin", wish([0, 0], "member1")])
    assert run.following()[0] == "granted"
    for one, times in ((other, 1), (member, 5000)):
        for _time in range(times):
            one.send(["cannot", token, "x" * 300])
        one.close()
        read_until(busy.server.stderr, "has left")
    assert run.following() == ["over", f"member1: {'x' * 300}"]
    assert not run.link.receive()
    run.close()


@pytest.mark.slow
def test_a_member_with_the_name_of_one_who_has_left(busy):
    """The run was told of somebody else."""
    run, _token, member, other = run_and_members(busy)
    member.close()
    read_until(busy.server.stderr, "member1 has left")
    again = Guest(busy, "join", ABOUT | {"name": "member1"})
    read_until(busy.server.stderr, "member1 has joined")
    run.send(["begin", wish([0, 0], "member1")])
    assert run.following() == ["over", "member1 has left the room"]
    for frames in (run, other, again):
        frames.close()


def following(frames):
    """The first message."""
    while not (found := frames.message()):
        assert found is not None
        select.select([frames.reading], [], [])
    return found


IMPOSSIBLE = [
    wish([0, 99]),
    wish([-1, 0]),
    wish([0, 1], "ann"),
    {"groups": [{"places": [0, 1], "boxes": [0]}], "boxes": []},
    {"groups": [{"places": [0, 1], "boxes": [0, 2]}], "boxes": ["ann", "zoe"]},
    {"groups": [], "boxes": []},
    {"groups": [{"places": [0], "boxes": [0]}] * 2, "boxes": []},
    {"groups": 5},
]


@pytest.mark.slow
def test_a_run_that_asks_for_what_cannot_be(busy):
    for impossible in IMPOSSIBLE:
        run = Guest(busy, "run", ABOUT)
        assert run.following()[0] == "members"
        run.send(["begin", impossible])
        assert "does not know this connection any more" in run.why(), wish
    run = Guest(busy, "run", ABOUT)
    assert run.following()[0] == "members"
    run.send(["begin", wish([0, 1], "ann", "zoe")])
    assert run.following() == ["over", "zoe has left the room"]
    run.close()


@pytest.mark.slow
def test_a_member_that_comes_while_a_run_decides(busy):
    run = Guest(busy, "run", ABOUT)
    assert run.following()[0] == "members"
    member = busy.join("zoe")
    run.send(["begin", wish([0, 0], "ann")])
    assert run.following()[0] == "granted"
    run.close()
    assert member.poll() is None


@pytest.mark.slow
def test_a_name_that_would_write_on_a_terminal(busy):
    member = Guest(busy, "join", {"name": "x\x1b[2J\n" + "y" * 999, "slots": 1})
    found = read_until(busy.server.stderr, "has joined, from 127.0.0.1 (3 members)")
    assert "\x1b" not in found and "y" * 99 not in found
    assert "x\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}yyy" in found
    member.close()
    read_until(busy.server.stderr, "has left (2 members)")


# ---- who would take over the link of another


def test_a_link_is_resumed_by_its_own_end_only(busy):
    """Everybody here knows the code, and even the number of the link; nobody else has its ticket."""
    member = Guest(busy, "join", ABOUT | {"name": "zoe"})
    assert member.following()[0] == "welcome"
    number, ticket = member.link._number, member.link._ticket
    frames = guest(busy)
    mine = room_link.proof(ticket, "client", frames.binding)
    for shown in ("", "0" * 64, room_link.proof(bytes(32), "client", frames.binding)):
        stranger = guest(busy)
        stranger.send(["resume", number, shown, 0])
        assert ended_with(stranger) == ""
    stranger = guest(busy)  # the proof of another connection
    stranger.send(["resume", number, mine, 0])
    assert ended_with(stranger) == ""
    stranger = guest(busy)  # of the server, which resumes nothing
    stranger.send(["resume", number, room_link.proof(ticket, "server", stranger.binding), 0])
    assert ended_with(stranger) == ""
    assert member.link.is_up
    frames.send(["resume", number, mine, 2])
    assert following(frames)[0] == "resumed"
    frames.close()
    member.close()


@pytest.mark.slow
def test_two_links_of_one_number(busy):
    member = Guest(busy, "join", ABOUT | {"name": "zoe"})
    frames = guest(busy)
    of = {"link": member.link._number, "ticket": member.link._ticket.hex()}
    frames.send(["hello", "join", versions.mine(), ABOUT, of])
    assert ended_with(frames) == ""
    member.close()


def test_a_full_server(room):
    """One with few descriptors: the next one that comes is told so, and when there is room again, let in."""
    few = 200
    room.serve(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (few, few)))
    frames = []
    with pytest.raises(connect.EntryError, match="is full"):
        while len(frames) < few:
            frames.append(guest(room))
    assert len(frames) == few // 4
    result = room("join", room.place)
    assert result.code == 125 and "is full" in result.err and result.err.count("\n") == 1, result
    with connections(room, few):
        result = room("doctor", room.place)
        assert result.code == 1 and "is full" in result.out, result
    for one in frames:
        one.close()
    while "is full" in (result := room("doctor", room.place)).out:
        pass
    assert result.code == 0, result
    room.close_room()
